package penstockkratos

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	"github.com/go-kratos/kratos/v2/middleware"
	"github.com/go-kratos/kratos/v2/transport"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Client returns a middleware that guards the calls that clients make, over HTTP and gRPC. The
// engine nil stands for [penstock.Default].
//
// Put a middleware that retries before this one if each attempt is to count as a call, and
// after it if all attempts are to count as one.
func Client(engine *core.Engine, options Options) middleware.Middleware {
	g := newGate(engine, options, false)
	return func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, request any) (any, error) {
			c := g.newCall(ctx)
			ctx, p := g.outboundPriority(ctx, &c)
			if g.options.Throttle == nil && g.options.RetryBudgets == nil {
				return g.send(ctx, &c, p, request, next, nil)
			}
			sent, err := g.begin(ctx, &c, p)
			if err != nil {
				return nil, err
			}
			var answer outgoing.Answer // to be set if the call is sent
			defer func() { sent.End(answer) }()
			return g.send(ctx, &c, p, request, next, &answer)
		}
	}
}

// send makes a call if its rules let it pass. It notes what its end says of the target, if to
// is not nil.
func (g *gate) send(ctx context.Context, c *call, p rule.Priority, request any, next middleware.Handler,
	to *outgoing.Answer,
) (any, error) {
	var guard core.Guard
	from := rpc.CallerOf(ctx)
	if err := g.enter(ctx, &guard, c, request, p); err != nil {
		return nil, err
	}
	var reply any
	err := g.Call(from, &guard, func() (err error) {
		reply, err = next(ctx, request)
		if to != nil {
			*to = g.answerOf(c, from, err)
		}
		return err
	})
	return reply, err
}

// begin asks the throttle and the retry budget of the target of a call. It returns the error
// for the caller.
func (g *gate) begin(ctx context.Context, c *call, p rule.Priority) (outgoing.Call, error) {
	target := ""
	if c.transport != nil {
		target = c.transport.Endpoint()
	}
	if g.options.Target != nil {
		target = g.options.Target(ctx, target, c.operation)
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
		if answer := g.options.Blocked(ctx, c.operation, block); answer != nil {
			return sent, answer
		}
	}
	return sent, newError(err, block, !g.options.ShowRules)
}

// answerOf returns what the end of a call with err says of its target.
func (g *gate) answerOf(c *call, from rpc.Caller, err error) outgoing.Answer {
	known, err := g.Ended(from, err)
	if !known {
		return outgoing.Answer{}
	}
	var reply transport.Header
	if c.transport != nil {
		reply = c.transport.ReplyHeader()
	}
	if g.options.Answer != nil {
		return g.options.Answer(err, reply)
	}
	return Answer(err, reply)
}

// Answer returns what the end of a call says of its target:
//
//   - the codes 429, 503 and 504, and an HTTP request without a response, are
//     [outgoing.Rejected]: the target is overloaded, cannot be reached or does not answer in
//     time. 499 is [outgoing.Ignored], all else [outgoing.Accepted]: whether the target has
//     served the call well is the business of breakers;
//   - of a rejected call, the longest of the google.rpc.RetryInfo in the status of gRPC, the
//     metadata "retry_after" of the error, and the header field Retry-After, or else RateLimit,
//     is how long the target wants no calls.
//
// reply may be nil. The trailer grpc-retry-pushback-ms does not come to middlewares of kratos.
func Answer(err error, reply transport.Header) outgoing.Answer {
	var unreachable *url.Error
	switch codeOf(err) {
	case statusClientClosedRequest:
		return outgoing.Answer{}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		if !errors.As(err, &unreachable) {
			return outgoing.Answer{Result: outgoing.Accepted}
		}
	}
	after := max(retryInfoIn(err), metadataIn(err))
	if reply != nil {
		header := make(http.Header)
		for _, name := range []string{"Retry-After", "Date", "RateLimit", "RateLimit-Remaining", "RateLimit-Reset"} {
			for _, value := range reply.Values(name) {
				header.Add(name, value)
			}
		}
		response := &http.Response{StatusCode: http.StatusTooManyRequests, Header: header}
		after = max(after, outgoing.HTTPAnswer(response, nil, time.Now()).RetryAfter)
	}
	return outgoing.Answer{Result: outgoing.Rejected, RetryAfter: after}
}

// metadataIn returns what the metadata of a kratos error says, 0 if that is nothing.
func metadataIn(err error) time.Duration {
	of := kerrors.FromError(err)
	if of == nil {
		return 0
	}
	after, err := time.ParseDuration(of.Metadata[retryAfterKey])
	if err != nil {
		return 0
	}
	return max(after, 0)
}

// retryInfoIn returns the RetryInfo in the details of a status error, 0 if there is none.
func retryInfoIn(err error) time.Duration {
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
