// Package penstockconnect guards the calls of Connect servers and clients (connectrpc.com)
// with Penstock, over the Connect protocol, gRPC and gRPC-Web, on HTTP/1.1 and HTTP/2. Its name
// does not collide with that of package connect.
//
//	guard := penstockconnect.ServerInterceptor(engine, penstockconnect.Options{})
//	mux.Handle(ordersconnect.NewOrdersHandler(&orders{}, connect.WithInterceptors(guard)))
//
// and likewise [ClientInterceptor] with a client. The engine nil stands for
// [penstock.Default]. Interceptors are safe for concurrent use. Each is for one side: calls of
// the other side that go through it fail with the code Internal.
//
// # Resources
//
// The resource of a call is its procedure, such as "/shop.Orders/Create", the same over all
// protocols, unless [Options.Resource] returns another name. If a process both serves and
// calls a procedure, that is one resource, unless the function distinguishes the two. Calls on
// the server are marked as inbound. What no handler serves never reaches an interceptor.
//
// # Attributes
//
// Rules can look at these attributes of a call, which are read only if a rule in force asks
// for them:
//
//   - method: the procedure.
//   - metadata:KEY: the first value of the header field with the name, in any case: Connect
//     sends metadata as header fields. The name is that of the adapter for gRPC, so that the
//     same rules work for both.
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
// A call of a server has the priority that its caller chooses by a header field, if the caller
// is trusted, see [Options.PriorityKey]. The context of the handler has it, and clients pass
// the priority of the context of a call on.
//
// # Refused calls
//
// A call that does not pass ends with a [*connect.Error], on clients and servers alike. It
// wraps the error of [core.Engine.Entry], so that outer interceptors, and callers of a guarded
// client, can distinguish a refusal of their own engine from an error of the server with
// errors.As and errors.Is:
//
//   - refused by a rule: by its reason ResourceExhausted (too many calls in a time),
//     Unavailable (too many calls at once, or what is called fails) or PermissionDenied.
//     The details are a RetryInfo, if the rule knows the time, and with ResourceExhausted a
//     QuotaFailure with the resource as its subject and the rule in its description, if
//     Options.ShowRules is set.
//   - the context ended while the call waited: Canceled or DeadlineExceeded.
//   - the engine is closed: Unavailable.
//   - the number of tokens made no sense, see [Options.Tokens]: Internal.
//
// The metadata of a refusal has Retry-After if the time is known. Over the Connect protocol it
// also has the RateLimit fields of package nethttp: for unary calls these are header fields of
// a response with the status 429, 503 or 403, for streams they are in its last message. Over
// gRPC and gRPC-Web it has "grpc-retry-pushback-ms: -1", which tells clients not to retry. (A
// client with a retry policy never retries a call of a Connect server: this sends the header
// of a response before the status.) Refusals that a handler returns through [Error] have the
// same metadata but for the RateLimit fields.
//
// # Clients that hold back
//
// [Options.Throttle] and [Options.RetryBudgets] refuse calls of a client that the server
// would reject, and retries, see package
// [github.com/penstock-go/penstock/adapters/outgoing]. The error has the code Unavailable,
// and a RetryInfo if the server has said when it wants calls again.
//
// # Streams
//
// A stream is one call, however many messages it carries. On the server the call lasts until
// the handler returns.
//
// Over HTTP/1.1, a server does not notice that the client of a stream leaves while the stream
// waits for its rules: net/http notices it after the request was read to its end. Such a
// stream keeps its place until it passes or is refused.
//
// On the client it begins before the first message is sent, when the header is complete, and
// Send returns the refusal. It lasts until Receive returns an error, io.EOF included; Send or
// CloseRequest returns an error other than io.EOF; the context ends; or CloseResponse is
// called. A caller that abandons a stream must cancel its context or close it. A stream that
// is closed before its end counts neither as failed nor as a success.
//
// # Failures
//
// A call counts as failed if its code blames the server. See [IsFailure]. If its context has
// ended, that is its outcome, whatever the handler returned: Canceled, which is not a failure,
// if the caller cancelled the call, and DeadlineExceeded, which is one, if it was under way at
// its deadline. A call that was cancelled, or that ends with the refusal of a guard further
// down, is not a success either: a circuit breaker does not count it. A panic is a failure, and
// is passed on, be [connect.WithRecover] before or after the guard.
//
// A client whose deadline has passed cancels the call, and a server cannot distinguish this
// from a client that disconnects. Therefore a call that is cancelled just before its deadline,
// within a third of its time but at most 50 ms, counts as having reached the deadline.
package penstockconnect
