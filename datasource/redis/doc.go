// Package redissource reads rule documents from Redis or Valkey and follows every change of
// them. All documents of an application are the fields of one hash: the name of a field is
// the name of a document, its value the text.
//
//	source, err := redissource.Open(rueidis.ClientOption{
//		InitAddress: []string{"redis:6379"}, Username: "shop", Password: password,
//	}, redissource.Key("shop"), redissource.Options{})
//	if err != nil {
//		return err
//	}
//	err = engine.Follow(ctx, source)
//
// [Open] makes a client of its own with suitable settings; [New] uses a client of
// github.com/redis/rueidis that the service already has. A single server, a cluster and a
// primary that sentinels watch are supported, of Redis 6 and later and of Valkey. The tests
// run against real servers of Redis 7.0.
//
// # Writing documents
//
// [Writer] writes several documents at once and counts revisions. Documents may also be
// written by hand, and removed with HDEL:
//
//	redis-cli -x HSET penstock:shop:rules orders.yaml < orders.yaml
//
// One hash is read in one step and lies on one node of a cluster, so every state that is
// applied is one that the server held as a whole. With keys below a prefix, none of that
// would be so, and a server would have to go through all its keys to find them. A hash of
// 10,000 documents is read anew at each change: keep what changes every second out of it.
//
// # Guarantees
//
// The server tells the client of the next change of the hash after each read, by
// client-side caching (CLIENT TRACKING): of a change by anybody, a removal, an expiry or
// FLUSHALL, and without a setting of the server. If the connection is lost, all documents
// are read again. They are also read each [Options.PollInterval], in case a proxy in
// between loses messages. If the server does not support client-side caching, or the
// user has no permission for it, the source logs that and only polls. Versions that follow
// each other quickly may be skipped, but none is applied out of order or in part.
//
// The source never applies the loss of data as a removal of rules. If the hash is gone
// although it was there before (evicted, expired, FLUSHALL, a server that restarted empty),
// the source counts as disconnected and its rules stay until documents are there again.
// [Writer.Delete] can remove the last document, because it leaves the revision in the
// hash, in a field with an empty name. HDEL of the last field by hand removes the hash, so
// it looks like a loss. A run that begins with no hash has no documents.
//
// # Failovers
//
// Replication in Redis is asynchronous: a replica that becomes the primary may lack the
// last changes, and clients of a primary that was cut off may read old documents. If the
// documents were written by a [Writer], the source sees that their revision is lower than
// before. It then counts as disconnected and keeps the newer rules, because another server
// may be found that has them. If the revision is still lower after
// [Options.AcceptOlderAfter], the changes are lost: the source logs a warning and applies
// what is there. Documents that a Writer wrote to an empty server are another history, and
// are applied at once, with a warning. Documents written by hand have no revision: going
// back cannot be told from a change.
//
// While a primary is cut off from its replicas but not from this process, its documents
// seem current. The server's settings min-replicas-to-write and min-replicas-max-lag bound
// what is lost at a failover. A replica is only read where the caller gives its address,
// and only while it has a link to its primary.
//
// # Requirements
//
// A user of an access control list needs no more than
//
//	ACL SETUSER shop on >… resetkeys ~penstock:shop:rules resetchannels -@all +hello +auth +ping
//	  +client|setname +client|tracking +client|caching +multi +exec +pttl +hexists +hlen
//	  +hgetall +role +cluster|slots +cluster|shards
//
// and for sentinels the permissions that sentinels ask of every client. The server should
// not evict the hash: use the maxmemory-policy noeviction, or one that evicts volatile keys.
//
// A server that does not answer is noticed within ConnWriteTimeout and Dialer.KeepAlive of
// the client, 6 s with [Open]. A user name and password that change belong in
// AuthCredentialsFn, which is called for each connection.
package redissource
