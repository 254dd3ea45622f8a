// Package etcd reads rule documents from an etcd cluster and follows every
// change of them. Each key below a prefix is one document. [Source.WatchLists] does the
// same for the lists that rules name.
//
//	source, err := etcd.Open(clientv3.Config{
//		Endpoints: []string{"etcd-1:2379", "etcd-2:2379", "etcd-3:2379"},
//	}, etcd.Prefix("shop"), etcd.Options{})
//	if err != nil {
//		return err
//	}
//	err = engine.Follow(ctx, source)
//
// [Open] makes a client of its own with suitable settings; [New] uses a client
// that the service already has.
//
// # Guarantees
//
// The source opens the watch first. Then it reads all documents at one revision,
// and drops what the watch delivers up to that revision. A read counts only when the
// server has answered on the stream of the watch after it. The server was then
// connected all the time, so no change is missed and all pages belong to one
// history, even if etcd was restored from a backup meanwhile and has since passed
// the revision that was read. Keys written by one transaction arrive as one change.
// Changes that arrive while another is applied are merged into one: the source may
// skip intermediate states, but never applies a state out of order, twice or in part.
//
// Whatever ends the watch (a lost connection, a member without a leader, a
// compaction, an expired token, silence) is reported to the engine, which keeps
// its rules. A complete read follows. The source never resumes a watch where an
// earlier one ended: after a restore from a backup it would miss the revisions in
// between. Reads are linearizable, so a member that was partitioned never supplies
// stale rules. A lower revision than before therefore means that the cluster was
// restored: the source logs that and applies what it reads.
//
// About once a minute ([Options.CompareInterval]) the source compares the revisions
// of all keys with those in etcd. This finds changes that the watch has missed,
// because a proxy in between resumed it at another cluster, and reads them.
//
// The pause between attempts grows with each failure. A connection that lasts less
// than [Options.MaxBackoff] counts as a failure too.
//
// # Requirements
//
// The client's user needs permission to read the prefix and no other. With
// [Options.Instance] set, it also needs permission to read and write the key of its
// report, and with [Source.WatchLists] to read [Keys].Lists. The source reports a missing permission and tries again, as with any error.
//
// The source notices silence within [Options.WatchTimeout], whether the peer died
// without closing the connection or a member still answers but has fallen behind the
// cluster. A source made by [Open] then opens a new connection, as it does when no
// member can be reached: if one address stands for several members, the new
// connection may reach another one, and certificates are read again if [Options.TLS]
// is set. A source made by [New] goes on with the caller's client. Such a client
// drops a dead connection only if DialKeepAliveTime is set; otherwise it keeps trying
// until the operating system gives up, which can take a quarter of an hour. A client
// with a single address stays with the member behind it, even without a leader: give
// it the addresses of all members.
//
// [Options.Token] reads a token that somebody else issues and renews. A source that
// logs in with a user name and a password renews its tokens itself.
//
// # Versions of etcd
//
// Servers of etcd 3.4 and later are supported. The tests run against the server of
// the client's own version, 3.7; following, idle watches, refusals and reports were
// also tested, with authentication, against 3.4.13 and 3.5.21. The source uses only
// what all of them support: Range at a revision, several watches with given IDs on
// one stream, leases and the stream that renews them. A server of 3.4 counts a watch
// as Unavailable, for lack of a leader, whenever a client ends it: once for each
// connection.
//
// etcd's grpc-proxy is supported, and tested with that of 3.7. It merges the watches
// of several instances into one, answers renewals of leases every five seconds, and
// resumes its watch at a cluster that was restored, which the comparison detects. One
// gap remains: behind a proxy that did not notice the restore, documents that were
// rewritten with other values at exactly the revisions they had before look unchanged
// until they are written again.
package etcd
