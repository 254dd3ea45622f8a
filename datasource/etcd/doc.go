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
// The documents are read first, all of them as they were at one revision, and
// watched from the revision after it: nothing written in between is missed.
// Keys written by one transaction arrive as one change. What comes while a
// change is applied becomes one change too: states in between may be skipped,
// and are never taken out of order, again or in part.
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
package etcd
