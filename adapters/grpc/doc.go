// Package penstockgrpc guards the calls of gRPC servers and clients with Penstock.
// Its name does not collide with that of package grpc.
//
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(penstockgrpc.UnaryServerInterceptor(engine, penstockgrpc.Options{})),
//		grpc.ChainStreamInterceptor(penstockgrpc.StreamServerInterceptor(engine, penstockgrpc.Options{})),
//	)
//
// and likewise [UnaryClientInterceptor] and [StreamClientInterceptor] with
// grpc.NewClient. The engine nil stands for [penstock.Default]. Interceptors are
// safe for concurrent use.
//
// # Resources
//
// The resource of a call is its full method, such as "/shop.Orders/Create", unless
// [Options.Resource] returns another name. If a process both serves and calls a
// method, that is one resource, unless the function distinguishes the two. Calls on
// the server are marked as inbound.
//
// A method that the server does not know never reaches an interceptor, unless the
// server has a handler set with grpc.UnknownServiceHandler. With such a server, for
// example a proxy, clients choose the names of resources. The engine bounds how many
// it keeps ([core.Config].MaxResources), but Options.Resource should map methods to
// known names.
//
// # Attributes
//
// Rules can look at these attributes of a call, which are read only if a rule in force
// asks for them:
//
//   - method: the full method.
//   - metadata:KEY: the first value of the metadata with the key, in any case: of the
//     incoming metadata on servers, of the outgoing metadata on clients.
//   - ip, on servers: the address of the client, see package
//     [github.com/penstock-go/penstock/adapters/clientip] and [Options.Clients].
//     A peer on a Unix socket counts as 127.0.0.1, one without an address is "unknown".
//   - ipPrefix, on servers: what identifies a client: its IPv4 address, or the network of
//     its IPv6 address, such as "2001:db8:1:2::/64".
//
// Texts of more than 1024 bytes are shortened, see package
// [github.com/penstock-go/penstock/adapters/attribute].
//
// # Priorities
//
// A call of a server has the priority that its caller chooses by metadata, if the caller is
// trusted, see [Options.PriorityKey]. The context of the handler has it, and clients pass
// the priority of the context of a call on.
//
// # Clients that hold back
//
// [Options.Throttle] and [Options.RetryBudgets] refuse calls of a client that the server
// would reject, and retries, see package
// [github.com/penstock-go/penstock/adapters/outgoing]. The error has the code Unavailable,
// and a RetryInfo if the server has said when it wants calls again.
//
// # Refused calls
//
// A call that does not pass ends with a status error, on clients and servers alike.
// It wraps the error of [core.Engine.Entry], so that outer interceptors, and callers
// of a guarded client, can distinguish a refusal of their own engine from an error
// of the server with errors.As and errors.Is:
//
//   - refused by a rule: by its reason ResourceExhausted (too many calls in a time),
//     Unavailable (too many calls at once, or what is called fails) or PermissionDenied.
//     The details are a RetryInfo, if the rule knows the time, of a server a little longer and
//     different for each call, see Options.Spread, and with
//     ResourceExhausted a QuotaFailure with the resource as its subject and the rule in
//     its description, if Options.ShowRules is set.
//   - the context ended while the call waited: Canceled or DeadlineExceeded.
//   - the engine is closed: Unavailable.
//   - the number of tokens made no sense, see [Options.Tokens]: Internal.
//
// A server tells clients with a retry policy not to retry a refused call, with the
// trailer "grpc-retry-pushback-ms: -1", whatever the code is. Otherwise a policy for
// RESOURCE_EXHAUSTED would multiply the very calls for which there is no capacity. If
// the wait is within Options.MaxPushback, the trailer contains the wait instead, and
// the client retries after it, as often as its policy allows: each refusal may then
// cost the server that many calls. The same applies to refusals that a handler
// returns through [Error].
//
// # Streams
//
// A stream is one call, however many messages it carries. On the server the call
// lasts until the handler returns.
//
// On the client it lasts until grpc, too, releases the stream: RecvMsg returns an
// error, io.EOF included, or the only message of a method that does not stream its
// replies; SendMsg, CloseSend or Header returns an error other than io.EOF; the
// context ends; or the connection is closed. A caller that abandons a stream must
// cancel its context.
//
// # Failures
//
// A call counts as failed if its status blames the server. See [IsFailure]. If its
// context has ended, the status that the caller sees counts, whatever the handler
// returned: Canceled, which is not a failure, if the caller cancelled the call, and
// DeadlineExceeded, which is one, if it was under way at its deadline.
//
// A call that was cancelled, or that ends with the refusal of a guard further down, is
// not a success either: a circuit breaker does not count it.
//
// A client whose deadline has passed cancels the call, and a server cannot
// distinguish this from a client that disconnects. Therefore a call that is cancelled
// just before its deadline, within a third of its time but at most 50 ms, counts as
// having reached the deadline.
//
// Two interceptors of one engine on one side count each call twice.
package penstockgrpc
