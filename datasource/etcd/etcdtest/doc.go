// Package etcdtest runs a real etcd server inside the process, on loopback, for
// tests and demonstrations. It starts in a fraction of a second and needs no
// installation.
//
//	server, err := etcdtest.Start(etcdtest.Options{})
//	if err != nil {
//		return err
//	}
//	defer server.Stop()
//	_, err = server.Client().Put(ctx, "/penstock/shop/checkout.yaml", document)
//
// It is a Go module of its own, so that a service that reads its rules from
// etcd never has the etcd server, and all that the server requires, in its own
// module graph. For the same reason the tests of the etcd source against a
// real server live here and not with the source.
//
// It is not for production: it has one member, no security unless configured, and
// does not sync writes to disk.
package etcdtest
