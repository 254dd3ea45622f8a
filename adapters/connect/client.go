package penstockconnect

import (
	"context"

	"connectrpc.com/connect"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// ClientInterceptor returns an interceptor that guards the calls that clients make, for
// [connect.WithInterceptors]: unary ones and streams. The engine nil stands for
// [penstock.Default].
//
// Put an interceptor that retries before this one if each attempt is to count as a call, and
// after it if all attempts are to count as one.
func ClientInterceptor(engine *core.Engine, options Options) connect.Interceptor {
	return &clientInterceptor{newGate(engine, options, false)}
}

type clientInterceptor struct{ *gate }

// WrapUnary guards unary calls.
func (g *clientInterceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		if !request.Spec().IsClient {
			return nil, connect.NewError(connect.CodeInternal, errWrongSide)
		}
		c := g.unary(ctx, request)
		defer g.release(c)
		p := g.outboundPriority(ctx, c.Header)
		if !g.throttles() {
			return g.send(ctx, c, p, request, next, nil)
		}
		sent, err := g.begin(ctx, c, p)
		if err != nil {
			return nil, err
		}
		var answer outgoing.Answer // to be set if the call is sent
		defer func() { sent.End(answer) }()
		return g.send(ctx, c, p, request, next, &answer)
	}
}

// send makes a unary call if its rules let it pass. It notes what its end says of the target,
// if to is not nil.
func (g *clientInterceptor) send(ctx context.Context, c *call, p rule.Priority, request connect.AnyRequest,
	next connect.UnaryFunc, to *outgoing.Answer,
) (connect.AnyResponse, error) {
	var guard core.Guard
	from := rpc.CallerOf(ctx)
	if err := g.enter(ctx, &guard, c, p); err != nil {
		return nil, err
	}
	var response connect.AnyResponse
	err := g.Call(from, &guard, func() (err error) {
		response, err = next(ctx, request)
		if to != nil {
			*to = g.answerOf(from, err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// WrapStreamingClient guards streams: each is one call, from its first message on. See the
// package's documentation for what ends one.
func (g *clientInterceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		return &clientStream{
			StreamingClientConn: next(ctx, spec), gate: g.gate, ctx: ctx, decided: make(chan struct{}),
		}
	}
}

// WrapStreamingHandler refuses all streams of servers, which need a [ServerInterceptor].
func (g *clientInterceptor) WrapStreamingHandler(connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(context.Context, connect.StreamingHandlerConn) error {
		return connect.NewError(connect.CodeInternal, errWrongSide)
	}
}
