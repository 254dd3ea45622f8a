// Package redis shares the limits of a fleet through Redis or Valkey. It is a
// [fleet.Store]:
//
//	store, err := redis.Connect(redis.Options{Addresses: []string{"redis:6379"}, App: "shop"})
//	// …
//	engine, err := core.New(core.Config{Fleet: fleet.Config{Backend: store}})
//
// Redis 6 and later and Valkey are supported: one server, a cluster ([Options.Addresses] of
// some nodes), or a primary that sentinels watch ([Options.SentinelMaster]). All tests, those of
// clusters, sentinels, TLS and permissions too, were run against real servers: Redis 6.0.16
// and 7.0.15, and Valkey 8.0.1.
//
// # What is stored
//
// Every limit is one key, {ps:<app>:<limit>}, and what operations count in different ways has
// suffixes, :w, :f, :l, :b and :p. A key has 90 to 170 bytes, whatever the limit is, except the log of
// [fleet.AskSlidingLog], which has an element for each call in a window, and the places of
// [fleet.ClaimPlaces], which have a field for each instance and stay for a day. Every key ends by
// itself when nothing of it is used any more, but for those of [fleet.AskBalance], which stay. {ps:<app>:}instances, {ps:<app>:}instance:<id>
// and {ps:<app>:}session:<id> are who is alive.
//
// A script takes the server 7 to 10 µs for a bucket, 12 to 15 for a window of ten buckets, 6 to
// 8 for a fixed window and 14 to 17 for a log, and 20 to 80 % more while others use the
// processor (BenchmarkExchange, Redis 7.0.15 on two busy cores, the least of 12 runs).
//
// All is decided by scripts in Lua, on the clock of the server: those of the instances do not
// matter. If the clock of the server jumps back, a bucket refuses for at most a second longer
// than it would have, or the time of 16 tokens, and a window for a window. If it jumps forward, instances are unknown
// until they announce themselves again, within a second.
//
// A server must not evict keys: the maxmemory-policy noeviction, or one that evicts others
// first (volatile-ttl takes the keys of limits first, and limits begin anew). What a server
// loses when it restarts, or at a failover, callers teach it again by [fleet.Request].Seen.
//
// # Permissions
//
// A user of an access control list needs no more than
//
//	ACL SETUSER fleet on >… resetkeys ~{ps:<app>:* resetchannels &ps:<app>:* -@all +hello +auth
//	  +client|setname +ping +evalsha +eval +time +get +mget +set +del +pexpire +zadd +zrem
//	  +zcard +zscore +zrange +zrangebyscore +zremrangebyscore +cluster|slots +cluster|shards
//	  +hmget +hset +hgetall +hdel +info +publish +subscribe
//
// (without resetchannels and the channels on Redis 6.0, which does not know it), and for sentinels the permissions that sentinels ask of every client.
//
// # Connections and failures
//
// [Connect] does not wait for the server. There is one connection to each server, over which
// requests are pipelined: more connections would not be faster. A connection that is lost, or
// that owes answers for about two seconds, is made again in the background, with pauses of 20
// to 500 ms. When the server turns out to be a replica, its name is looked up again, or the
// sentinels are asked.
//
// A request is never sent twice, since a request without an answer may have been made. Only
// those that a server has refused for lack of the script (NOSCRIPT) are sent once more, with
// the script. So the requests of one exchange are made in any order. MOVED and ASK of a
// cluster are followed.
//
// Errors say what to do about them, and never have a password. errors.Is(err,
// [fleet.ErrUnavailable]) tells that the server cannot serve anybody at present: no
// connection, no answer in time, no memory (OOM), a replica (READONLY), a wrong password, no
// permission, LOADING, CLUSTERDOWN. Other errors are about one limit.
//
// # The client
//
// The client is github.com/redis/rueidis. Beside github.com/redis/go-redis (v1.0.79 and
// v9.23.0, Redis 7.0.15 and the client on two cores that others used too), batches of 1, 10
// and 100 scripts took 65, 187 and 1,112 µs instead of 70, 229 and 1,535 µs, with 10, 19 and
// 109 allocations instead of 32, 189 and 1,722; the processor time of the client was 36, 75
// and 257 µs instead of 24, 75 and 289 µs (medians of 3). It needs golang.org/x/sys and no
// other module, follows MOVED without repeating what may have been made, and a timeout does
// not cost the connection.
package redis
