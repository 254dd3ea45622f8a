// Package penstockredis guards the commands of a Redis client, github.com/redis/go-redis/v9,
// with Penstock. It is a hook:
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	client.AddHook(penstockredis.NewHook(nil, penstockredis.Options{}))
//
// A command that a rule refuses is not sent, and no connection is taken from the pool for it.
// Its error is a [*core.BlockError]:
//
//	value, err := client.Get(ctx, "greeting").Result()
//	if errors.Is(err, core.ErrBlocked) {
//		return fallback, nil
//	}
//
// The hook works with Client, ClusterClient, Ring and failover clients, and their transactions;
// a Conn of a Client has the hooks of the client since version 9.9 of go-redis. Hooks run in the order in which they were added: one that is added before this one,
// such as a tracer, sees refused commands, too. A hook is safe for concurrent use.
//
// # Resources
//
// What is one round trip for the program is one call:
//
//   - A command is a call of "redis:" and its name in upper case: "redis:GET", "redis:CLUSTER".
//     Retries and redirections that the client makes for it are a part of the call. A program
//     can send commands with names of its own making: the first thousand names, of at most 64
//     bytes, are resources, and all others together are "redis:OTHER".
//   - A pipeline is one call of "redis:PIPELINE" with as many tokens as it has commands, and a
//     transaction (TxPipeline) one of "redis:MULTI", without counting MULTI and EXEC. It is sent
//     as a whole or not at all; if not, all of its commands have the error. A pipeline with more
//     commands than a rule ever lets pass at once is always refused.
//
// So a limit on "redis:GET" does not count the GETs in pipelines, and a rule with the pattern
// "redis:*" and perResource: false counts every command once. [Options.Resource] and
// [Options.Pipeline] choose other names.
//
// Some commands always pass and are no calls: those that set connections up (HELLO, AUTH,
// SELECT, CLIENT, READONLY, READWRITE, ASKING), which clients send by themselves within the call
// of another command; and those that give back what a connection holds (UNWATCH, DISCARD,
// RESET, QUIT). A pipeline of nothing else is no call either. Commands that a program sends in
// redis.Options.OnConnect are calls, within the call for which the connection is made: do not
// limit both to a few at once by one rule. (Before version 9.9 they are not guarded.)
//
// Messages of pub/sub connections, SUBSCRIBE and the like, do not go through hooks: they are not
// guarded. PUBLISH is a command like any other.
//
// # Commands that wait
//
// BLPOP and its like wait at the server until there is something, see [IsBlocking]. That is not
// slowness of the server, and it uses nothing of it. So rules decide whether such a command is
// sent, but its call ends there: it has no duration, no place of those under way at once, and
// no outcome. A circuit breaker that is open stops it, and neither its wait nor its error opens
// one. To have such commands count like all others, for example because the connections that
// they hold are what is scarce, set
//
//	penstockredis.Options{Blocking: func(context.Context, redis.Cmder) bool { return false }}
//
// # Attributes and priorities
//
// Rules can look at these attributes, which are read only if a rule in force asks for them:
//
//   - command: the name of the command in upper case; PIPELINE or MULTI for a pipeline.
//   - key: the first key of the command, as text; of pipelines none. With it a hotParam rule
//     limits the calls of each key. The key is found by the position that it has in Redis's own
//     commands; in those of modules it is the first argument.
//
// A call has the priority of its context, [core.ContextWithPriority].
//
// # Failures
//
// A call counts as failed if the server or the network is to blame: see [IsFailure]. It is
// neither a failure nor a success if its caller had cancelled it before the server answered, if
// the client was closed, or if a guard further down refused it. A deadline that has passed is a
// failure. [redis.Nil] and errors that the command deserves are successes. The client ends
// commands at the deadline of the context only with redis.Options.ContextTimeoutEnabled;
// without, at its own timeouts.
//
// # Throttles and retry budgets
//
// With [Options.Throttle] a client sends fewer commands to a server that turns most of them away
// (see [Answer]), and with [Options.RetryBudgets] no more than a share of retries: see package
// outgoing. Both know a server as "redis" unless [Options.Target] names it, so clients of several
// servers need names, or a Throttle each. A client of a cluster has one target, too, unless
// Target tells the parts of it apart. Retries and redirections that the client makes for a
// command are a part of it: the last answer counts. Commands that always pass are not throttled.
//
// # Costs
//
// Guarding a command allocates nothing, unless [Options.Attributes] or [Options.Target] is set.
package penstockredis
