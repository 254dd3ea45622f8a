// Package store changes the rule documents that are in etcd: it pushes complete
// sets of them, keeps their history, and tells what the instances that follow
// them report. The source, package etcd, only reads.
//
//	s, err := store.New(client, etcd.Prefix("shop"))
//	...
//	found, err := s.Pull(ctx)
//	...
//	revision, err := s.Push(ctx, store.Push{
//		Documents: changed, Expect: found.Revision, Author: "alice", Message: "more room for orders",
//	})
//	...
//	err = s.WaitFor(ctx, revision.Revision, nil)
//
// # Pushes
//
// A push is one transaction of etcd: all of it is done or none. It fails with a
// [*ConflictError] when somebody has written to the documents since the revision
// that the push expects, be it with another push or with other tools. Of pushes
// that expect the same revision exactly one is done.
//
// What cannot be seen: etcd compares the keys that there are. A document that
// other tools delete while a push is under way, after its last look and before
// its transaction, is noticed only if it is among those that the transaction
// compares one by one: 126 of them in a push that writes up to 120, 62 in one that
// writes up to 4,000, 40 in a larger one. The documents that the push leaves alone
// come first, for the others are written or deleted in any case. A deletion that
// slips through stands, while the entry of that push has the document still.
//
// A push that is too large for one request, of 1.5 MiB by default with the
// history included, fails and changes nothing.
//
// # History
//
// Each push leaves an entry with all documents as they were after it. What other
// tools wrote is recorded as an entry of its own by the push that comes after it.
// To roll back is to push what [Store.At] returns.
//
// # Rights
//
// The client's user needs the rights to read and write the documents and the
// history, and to read the instances: see [etcd.Keys].
package store
