package penstockconnect

import (
	"context"
	"errors"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

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
//   - of a rejected call, the longest of the google.rpc.RetryInfo in the details, the
//     metadata Retry-After, or else RateLimit, and grpc-retry-pushback-ms is how long the
//     target wants no calls;
//   - metadata grpc-retry-pushback-ms that is negative, or no number, or is there several
//     times, says that the call is not to be retried.
func Answer(err error) outgoing.Answer {
	a := outgoing.Answer{Result: outgoing.Accepted}
	var meta http.Header
	var coded *connect.Error
	if errors.As(err, &coded) {
		meta = coded.Meta()
	}
	var pushback time.Duration
	pushback, a.NoRetry = rpc.Pushback(meta[pushbackField])
	switch codeOf(err) {
	case rpc.Canceled:
		a.Result = outgoing.Ignored
	case rpc.ResourceExhausted, rpc.Unavailable, rpc.DeadlineExceeded:
		a.Result = outgoing.Rejected
		response := &http.Response{StatusCode: http.StatusTooManyRequests, Header: meta}
		a.RetryAfter = max(retryInfoIn(coded), outgoing.HTTPAnswer(response, nil, time.Now()).RetryAfter, pushback)
	}
	return a
}

// retryInfoIn returns the RetryInfo in the details of an error, 0 if there is none.
func retryInfoIn(err *connect.Error) time.Duration {
	if err == nil {
		return 0
	}
	for _, detail := range err.Details() {
		value, err := detail.Value()
		if err != nil {
			continue // of a type that this process does not know
		}
		if info, ok := value.(*errdetails.RetryInfo); ok {
			return max(info.GetRetryDelay().AsDuration(), 0)
		}
	}
	return 0
}

// throttles reports whether calls are throttled, or retries counted.
func (g *gate) throttles() bool { return g.options.Throttle != nil || g.options.RetryBudgets != nil }

// begin asks the throttle and the retry budget of the target of a call. It returns the error
// for the caller.
func (g *gate) begin(ctx context.Context, c *call, p rule.Priority) (outgoing.Call, error) {
	if !g.throttles() {
		return outgoing.Call{}, nil
	}
	target := c.Peer.Addr
	if g.options.Target != nil {
		target = g.options.Target(ctx, &c.Call)
	}
	if target == "" {
		return outgoing.Call{}, nil
	}
	sent, err := outgoing.Begin(ctx, g.options.Throttle, g.options.RetryBudgets, target, p)
	if err == nil {
		return sent, nil
	}
	block := rpc.RefusalIn(err)
	if g.options.Blocked != nil {
		if answer := g.options.Blocked(ctx, &c.Call, block); answer != nil {
			return sent, answer
		}
	}
	return sent, newError(err, block, !g.options.ShowRules)
}

// answerOf returns what the end of a call with err says of its target.
func (g *gate) answerOf(from rpc.Caller, err error) outgoing.Answer {
	known, err := g.Ended(from, err)
	switch {
	case !known:
		return outgoing.Answer{}
	case g.options.Answer != nil:
		return g.options.Answer(err)
	}
	return Answer(err)
}
