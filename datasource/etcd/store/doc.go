// Package store changes the rule documents in etcd: it pushes complete sets of
// them, keeps their history, and reads the reports of the instances that follow
// them. The source, package etcd, only reads documents.
//
//	s, err := store.New(client, etcd.Prefix("shop"))
//	...
//	found, err := s.Pull(ctx)
//	...
//	revision, err := s.Push(ctx, store.Push{
//		Documents: changed, Expect: found.Revision, Author: "alice", Message: "higher limit for orders",
//	})
//	...
//	err = s.WaitFor(ctx, revision.Revision, nil)
//
// # Pushes
//
// A push is one transaction of etcd: all of it is done or none. It fails with a
// [*ConflictError] when somebody has written to the documents since the revision
// that the push expects, whether with another push or with other tools. Of
// concurrent pushes that expect the same revision exactly one succeeds.
//
// There is one gap: etcd compares existing keys only. If other tools delete a
// document during a push, after its last read and before its transaction, the push
// notices only if it is among the documents that the transaction compares one by
// one: 126 of them in a push that writes up to 120, 62 in one that writes up to
// 4,000, 40 in a larger one. Documents that the push does not change are compared
// first, because it writes or deletes the others in any case. A deletion that goes
// unnoticed stays in effect, while the push's entry still contains the document.
//
// A push that is too large for one request, of 1.5 MiB by default with the
// history included, fails and changes nothing.
//
// # History
//
// Each push adds an entry with all documents as they were after it. Writes of other
// tools are recorded as an entry of their own by the next push. To roll back, push
// what [Store.At] returns.
//
// # Lists
//
// [Store.PushList] replaces a list that rules name, of up to 1 GiB of text. A value in
// etcd has 1.5 MiB at most, so a list is in chunks, below the SHA-256 of the whole, and a
// manifest says which version is in force. The chunks are written first. One transaction
// then writes the manifest and deletes the chunks of versions that are not kept, if nobody has
// interfered. [Store.ListHistory] has the last versions, [Store.RollBackList] restores one.
//
// # Permissions
//
// The client's user needs permission to read and write the documents and the
// history, and to read the instances; for lists, to read and write those: see
// [etcd.Keys].
package store
