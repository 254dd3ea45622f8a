package penstockgrpc

import (
	"context"
	"slices"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/rule"
)

// Answer returns what the end of a call says of its target:
//
//   - ResourceExhausted, Unavailable and DeadlineExceeded are [outgoing.Rejected]: the
//     target is overloaded, cannot be reached or does not answer in time. Canceled is
//     [outgoing.Ignored], all else [outgoing.Accepted]: whether the target has served the
//     call well is the business of breakers;
//   - of a rejected call, the longer of the google.rpc.RetryInfo in the status and the
//     trailer grpc-retry-pushback-ms is how long the target wants no calls;
//   - a trailer grpc-retry-pushback-ms that is negative, or no number, or is there several
//     times, says that the call is not to be retried.
func Answer(err error, trailer metadata.MD) outgoing.Answer {
	a := outgoing.Answer{Result: outgoing.Accepted}
	var pushback time.Duration
	pushback, a.NoRetry = rpc.Pushback(trailer[pushbackKey])
	switch codeOf(err) {
	case rpc.Canceled:
		a.Result = outgoing.Ignored
	case rpc.ResourceExhausted, rpc.Unavailable, rpc.DeadlineExceeded:
		a.Result = outgoing.Rejected
		a.RetryAfter = max(retryInfoOf(err), pushback)
	}
	return a
}

// retryInfoOf returns the RetryInfo in the details of a status error, 0 if there is none.
func retryInfoOf(err error) time.Duration {
	s, ok := status.FromError(err)
	if !ok {
		return 0
	}
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return max(info.GetRetryDelay().AsDuration(), 0)
		}
	}
	return 0
}

// throttles reports whether calls are throttled, or retries counted.
func (g *gate) throttles() bool { return g.options.Throttle != nil || g.options.RetryBudgets != nil }

// begin asks the throttle and the retry budget of the target of a call. It returns the error
// for the caller.
func (g *gate) begin(ctx context.Context, fullMethod string, conn *grpc.ClientConn, p rule.Priority) (outgoing.Call, error) {
	if !g.throttles() {
		return outgoing.Call{}, nil
	}
	target := ""
	if conn != nil {
		target = conn.Target()
	}
	if g.options.Target != nil {
		target = g.options.Target(ctx, target, fullMethod)
	}
	if target == "" {
		return outgoing.Call{}, nil
	}
	call, err := outgoing.Begin(ctx, g.options.Throttle, g.options.RetryBudgets, target, p)
	if err != nil {
		return call, g.answer(ctx, fullMethod, rpc.RefusalIn(err), err)
	}
	return call, nil
}

// listening returns an invoker that notes what the end of the call says of its target.
func (g *gate) listening(invoker grpc.UnaryInvoker, to *outgoing.Answer) grpc.UnaryInvoker {
	return func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, opts ...grpc.CallOption) error {
		from := rpc.CallerOf(ctx)
		var trailer metadata.MD
		err := invoker(ctx, method, request, reply, conn, append(slices.Clip(opts), grpc.Trailer(&trailer))...)
		*to = g.answerOf(from, err, trailer)
		return err
	}
}

// answerOf returns what the end of a call with err says of its target.
func (g *gate) answerOf(from rpc.Caller, err error, trailer metadata.MD) outgoing.Answer {
	known, err := g.Ended(from, err)
	switch {
	case !known:
		return outgoing.Answer{}
	case g.options.Answer != nil:
		return g.options.Answer(err, trailer)
	}
	return Answer(err, trailer)
}
