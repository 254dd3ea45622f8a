// Package penstockgrpc guards the calls of gRPC servers and clients with
// Penstock. It is named so that it can stand in one file with package grpc.
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
// A call is one of the resource named as its full method, such as
// "/shop.Orders/Create", unless [Options.Resource] says otherwise. A process that
// both serves and calls a method has one resource for the two, unless that
// function tells them apart. On the server calls are marked as inbound.
//
// A method that the server does not know never gets as far as an interceptor,
// unless there is a handler set with grpc.UnknownServiceHandler. For such a
// server, a proxy for example, clients make up the names of resources. The engine
// bounds what it remembers of them ([core.Config].MaxResources), but better have
// Options.Resource map the methods to names that are known.
//
// # Refused calls
//
// A call that is not let through ends with a status error. Client and server
// make it of the same error of [core.Engine.Entry], and errors.As and errors.Is
// still find that one in it, so that interceptors further out, and callers of a
// guarded client, can tell a refusal of their own engine from what came over the
// wire:
//
//   - refused by a rule: ResourceExhausted. The details are a QuotaFailure with
//     the resource as its subject and the rule in its description, unless
//     Options.HideRules keeps that back, and, when the rule can tell, a
//     RetryInfo.
//   - the context ended while the call waited for its turn: Canceled or
//     DeadlineExceeded.
//   - the engine is closed: Unavailable.
//   - the number of tokens made no sense, see [Options.Tokens]: Internal.
//
// A server tells the retry policies of its clients not to make a refused call
// again: with the trailer "grpc-retry-pushback-ms: -1", whatever the code is. A
// policy for RESOURCE_EXHAUSTED would otherwise multiply just those calls that
// there is no room for. Within Options.MaxPushback the trailer holds the wait, and
// the client makes the call again after it, as often as its policy allows: then
// each refusal may cost the server that many calls. The same holds for refusals
// that a handler returns by means of [Error].
//
// # Streams
//
// A stream is one call, however many messages it carries. It is under way, for
// the engine, as long as it lives. On the server that is until its handler
// returns.
//
// On the client it is until one of those things happens by which grpc, too,
// releases a stream: RecvMsg returns an error, io.EOF included, or the only
// message of a method that does not stream its replies; SendMsg, CloseSend or
// Header returns an error other than io.EOF; the context ends; the connection is
// closed. A caller that abandons a stream must end its context.
//
// # Failures
//
// A call that ends with a status that blames the server counts as failed. See
// [IsFailure]. If its context has ended, it counts as what it is to the caller,
// whatever the handler made of that: as Canceled, which is no failure, when the
// caller gave it up, and as DeadlineExceeded, which is one, when it was under way
// at its deadline.
//
// A client whose deadline has come cancels the call, and a server cannot tell this
// from a client that leaves. Therefore a call that is cancelled just before its
// deadline, within a third of the time that it had but at most 50 ms, counts as
// one that met it.
//
// Two interceptors of one engine on one side count each call twice.
package penstockgrpc
