// Package etcdtest runs a real etcd server inside the process, on loopback:
// for tests, for demonstrations, for trying things out without installing
// anything. It is up in a fraction of a second.
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
// It is no server for production: it has one member, knows no security unless
// configured, and does not force writes to the disk.
package etcdtest
