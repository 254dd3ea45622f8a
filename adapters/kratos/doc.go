// Package penstockkratos guards the calls of kratos servers and clients with Penstock, over
// HTTP and gRPC. Its name does not collide with that of kratos.
//
//	guard := penstockkratos.Server(engine, penstockkratos.Options{})
//	servers := kratos.Server(
//		http.NewServer(http.Middleware(recovery.Recovery(), guard)),
//		grpc.NewServer(grpc.Middleware(recovery.Recovery(), guard)),
//	)
//
// and likewise [Client] with http.WithMiddleware and grpc.WithMiddleware. The engine nil
// stands for [penstock.Default]. Middlewares are safe for concurrent use.
//
// # Resources
//
// The resource of a call is its operation, such as "/shop.Orders/Create", the same over HTTP
// and gRPC, unless [Options.Resource] returns another name. A route over HTTP that is not
// generated has its pattern as its operation, such as "/orders/{id}", unless its handler calls
// http.SetOperation. Rules with patterns are not for "/healthz" and the other names of
// [core.DefaultExempt]. Where the context has no transport, it is [Unmatched]. Calls on the
// server are marked as inbound.
//
// kratos runs middlewares only in handlers that call Context.Middleware, as generated code
// does: what is registered with Handle, HandleFunc or HandlePrefix does not reach them, nor
// does a path without a route. Use the middleware of package nethttp as a filter there.
//
// # Streams
//
// kratos has no middleware for streams of gRPC as a whole: one in grpc.StreamMiddleware runs
// for each message. Guard streams with the interceptors of package penstockgrpc:
//
//	grpc.NewServer(
//		grpc.Middleware(guard),
//		grpc.StreamInterceptor(penstockgrpc.StreamServerInterceptor(engine, penstockgrpc.Options{})),
//	)
//	grpc.DialInsecure(ctx,
//		grpc.WithMiddleware(penstockkratos.Client(engine, penstockkratos.Options{})),
//		grpc.WithStreamInterceptor(penstockgrpc.StreamClientInterceptor(engine, penstockgrpc.Options{})),
//	)
//
// # Attributes
//
// Rules can look at these attributes of a call, which are read only if a rule in force asks
// for them:
//
//   - method: the operation.
//   - metadata:KEY: the first value of the header field, or of the metadata of gRPC, with the
//     key, in any case.
//   - ip, on servers: the address of the client, see package
//     [github.com/penstock-go/penstock/adapters/clientip] and [Options.Clients]. A peer
//     on a Unix socket counts as 127.0.0.1, one without an address is "unknown".
//   - ipPrefix, on servers: what identifies a client: its IPv4 address, or the network of its
//     IPv6 address, such as "2001:db8:1:2::/64".
//
// Texts of more than 1024 bytes are shortened, see package
// [github.com/penstock-go/penstock/adapters/attribute].
//
// # Priorities
//
// A call of a server has the priority that its caller chooses by a header field or metadata, if
// the caller is trusted, see [Options.PriorityKey]. The context of the handler has it, and
// clients pass the priority of the context of a call on.
//
// # Refused calls
//
// A call that does not pass ends with a kratos error, on clients and servers alike. It wraps
// the error of [core.Engine.Entry], so that errors.As and errors.Is distinguish a refusal of
// this process from an error of the server. errors.FromError finds it:
//
//	code  reason        gRPC                when
//	429   RATE_LIMITED  RESOURCE_EXHAUSTED  too many calls in a time, or of one value
//	503   OVERLOADED    UNAVAILABLE         too many calls at once
//	503   UNAVAILABLE   UNAVAILABLE         what is called fails, or the engine is closed
//	403   DENIED        PERMISSION_DENIED   the caller may not call
//	503   INJECTED      UNAVAILABLE         a fault is injected; the rule may say other codes
//	499   CANCELED      CANCELLED           the caller left while the call waited
//	504   DEADLINE      DEADLINE_EXCEEDED   the deadline came while the call waited
//	500   INVALID       INTERNAL            the number of tokens made no sense
//
// The metadata of a refusal has resource, kind and rule, if Options.ShowRules is set, and
// retry_after, such as "1.5s", if it is known when such a call can pass. Beside that, a server
// answers
//
//   - over HTTP with Retry-After and the RateLimit fields of package nethttp;
//   - over gRPC with a RetryInfo, a QuotaFailure, and the trailer
//     "grpc-retry-pushback-ms: -1": the retry policies of clients do not multiply the calls for
//     which there is no capacity.
//
// An encoder of errors that is set with http.ErrorEncoder sees the kratos error. Calls that are
// refused alike share it, as they share an error that a program declares once: a middleware
// that adds metadata uses WithMetadata, which copies it, and does not write to the map.
//
// # Clients that hold back
//
// [Options.Throttle] and [Options.RetryBudgets] refuse calls of a client that the server would
// reject, and retries, see package
// [github.com/penstock-go/penstock/adapters/outgoing]. Their errors have the reason
// OVERLOADED. What a server says with Retry-After, RetryInfo or retry_after is obeyed. Old
// versions of kratos hide the header of a response from middlewares; retry_after is in the
// body. The trailer grpc-retry-pushback-ms does not come to middlewares: where servers forbid
// retries with it, use the interceptors of package penstockgrpc.
//
// # Failures
//
// A call counts as failed if its code is 500 or above. See [IsFailure]. If its context has
// ended, that is its outcome, whatever the handler returned: 499, which is no failure, if the
// caller cancelled the call, and 504, which is one, if it was under way at its deadline. A call
// that was cancelled, or that ends with the refusal of a guard further down, is not a success
// either: a circuit breaker does not count it. A panic is a failure, and is passed on: put a
// middleware that recovers further out.
package penstockkratos
