// Package outgoing limits what a client asks of the services that it calls. It is for
// client adapters, such as those for net/http and gRPC, and for retry loops.
//
//   - A [Throttle] refuses calls of a service that rejects most of what it is asked, so
//     that the service spends its time on calls that it can serve, and not on rejecting
//     the others. It also obeys what the service says about when to come back.
//   - [RetryBudgets] bound the retries of each service to a share of its calls, so that
//     retries cannot multiply the load of a service that fails.
//
// Both keep state for each target: usually the host, or the target of a gRPC connection.
// A call asks [Begin] before it is sent and says by [Call.End] how it ended:
//
//	call, err := outgoing.Begin(ctx, throttle, budgets, "payments:443", priority)
//	if err != nil {
//		return err // an *Error: the call is not to be sent
//	}
//	response, err := send(ctx)
//	call.End(outgoing.Answer{Result: outgoing.Accepted})
//
// Adapters do that: see nethttp.Transport and the client interceptors for gRPC.
//
// A call that is refused here has an [*Error]. It wraps a [core.BlockError] with the
// reason Overloaded, so a handler that passes it on answers with 503 or UNAVAILABLE, and
// neither a breaker around the call nor the handler's own statistics count it as a
// failure.
package outgoing
