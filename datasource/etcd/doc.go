// Package etcd reads rule documents from an etcd cluster and follows every
// change of them. Each key below a prefix is one document.
//
//	source, err := etcd.Open(clientv3.Config{
//		Endpoints: []string{"etcd-1:2379", "etcd-2:2379", "etcd-3:2379"},
//	}, etcd.Prefix("shop"), etcd.Options{})
//	if err != nil {
//		return err
//	}
//	err = engine.Follow(ctx, source)
//
// [Open] makes a client of its own with sound settings; [New] takes one that
// the service has already.
//
// # What it promises
//
// The watch is opened first. Then all documents are read as they were at one
// revision, and what the watch brings up to that revision is dropped. A read counts
// when the server has answered on the stream of the watch after it: the server has
// then been there all the time, so that nothing is missed and all pages are of one
// history, even if etcd was restored from a backup meanwhile and written on past the
// revision that was read. Keys written by one transaction arrive as one change. What
// comes while a change is applied becomes one change too: states in between may be
// skipped, and are never taken out of order, again or in part.
//
// Whatever ends the watch (a lost connection, a member without a leader, a
// compaction, an expired token, silence) is reported to the engine, which keeps
// the rules it has, and is followed by a complete read. The source never
// resumes a watch where an earlier one ended: a cluster that came back from a
// backup would let the revisions in between pass unseen. Reads are
// linearizable, so a member that was cut off never supplies stale rules; what
// it reads is therefore the truth even when the revision is lower than before,
// as it is after a restore. The source logs that and goes by it.
//
// About once a minute the revisions of all keys are compared with those in etcd
// ([Options.CompareInterval]). What the watch has missed, because something in
// between resumed it at another cluster, is found by that, and read.
//
// Attempts are made after pauses that grow with each failure. A connection that does
// not last for [Options.MaxBackoff] counts as a failure too.
//
// # What it needs
//
// The user that the client logs in as needs the right to read the prefix, no
// other. With [Options.Instance] set, it also needs the rights to read and to
// write the key of its report. A right that is missing is reported and tried
// again, as any error is.
//
// Silence is noticed within [Options.WatchTimeout], be it that of a peer that
// died without a word or of a member that goes on answering and has fallen
// behind the cluster. A source made by [Open] then leaves the connection for a
// new one, as it does when no member can be reached: where one address stands
// for several members the new one may end at another, and certificates are read
// again if [Options.TLS] is set. A source made by [New] goes on with the
// caller's client. Only one with DialKeepAliveTime set leaves a dead connection;
// others keep trying it until the operating system gives it up, which can take a
// quarter of an hour. And one with a single address stays with the member behind
// it, even without a leader: give it the addresses of all members.
//
// A token that somebody else issues and renews is read by [Options.Token]. A source
// that logs in with a user name and a password renews its tokens itself.
//
// # Versions of etcd
//
// Servers of etcd 3.4 and later are supported. The tests run against the server of
// the client's own version, 3.7; following, idle watches, refusals and reports were
// also tried, with authentication, against 3.4.13 and 3.5.21. Of the protocol the
// source uses what all of them have: Range at a revision, several watches with given
// numbers on one stream, leases and the stream that renews them. A server of 3.4
// counts a watch as Unavailable, for want of a leader, whenever a client ends it: that
// is once for each connection.
//
// etcd's grpc-proxy in between is supported, and tried with that of 3.7: it makes
// one watch of those of several instances, answers renewals of leases every five
// seconds, and resumes its watch at a cluster that was restored, which the
// comparison finds. One gap is left: documents that were written anew with other
// values at the very revisions that they had before, behind a proxy that did not
// notice, are not told apart until they change.
package etcd
