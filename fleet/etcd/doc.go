// Package etcd shares limits among the instances of a service by demand, through etcd.
//
//	backend, err := etcd.Open(clientv3.Config{
//		Endpoints: []string{"etcd-1:2379", "etcd-2:2379", "etcd-3:2379"},
//	}, "/penstock/shop/")
//	if err != nil {
//		return err
//	}
//	defer backend.Close()
//	engine := core.New(core.Config{Fleet: fleet.Config{Backend: backend}})
//
// Each instance announces what its calls demand and which part of a limit it has reserved,
// see [fleet.Share]. An announcement is a key below "/penstock/shop.fleet/" under a lease of
// 5 s. It is written when it has changed by more than 5 %, and every 10 s. Each instance
// watches the keys of all.
//
// # What it cannot do
//
// etcd writes to the disks of a majority for each change, so this backend counts nothing: it
// is not a [fleet.Store]. Rules with mode lease, window or ask need one, such as a Redis
// server; here they fail with [fleet.ErrUnsupported].
//
// It is for up to 100 instances. What an instance announces goes to all others, so that the
// traffic grows with the square of their number. A change of demand takes about two seconds
// to change the parts, and in windows that are longer than a second about as much longer.
// Until then calls may be refused while the fleet as a whole is below its limit. All parts
// together do not exceed it.
//
// # Failures
//
// While etcd does not answer, all instances go on as their rules say with onOutage. No call
// of a backend takes longer than its context. Whatever has ended a watch or a lease (a lost
// connection, a compaction, a cluster that was restored or began empty), the backend reads
// all keys again and writes its own.
//
// Two instances with the same name are a mistake: the one that comes later cannot announce
// itself, and its error is [ErrNameTaken]. A process that was killed and has a name of its
// own choice gets this error until its former lease has ended, for 5 s.
//
// # Requirements
//
// The client's user needs permission to read and write the keys below the prefix, as in
// "/penstock/shop.fleet/". Servers of etcd 3.4 and later are supported; the tests run
// against 3.7. A server may prolong short leases if its election timeout is longer than the
// default: instances that died then count for longer.
package etcd
