package penstockconnect

import (
	"context"
	"errors"
	"maps"

	"connectrpc.com/connect"

	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
)

// errWrongSide is the error of calls whose interceptor is made for the other side.
var errWrongSide = errors.New("penstockconnect: ServerInterceptor is for handlers and ClientInterceptor for clients, " +
	"and this call goes through the one of the other side")

// ServerInterceptor returns an interceptor that guards the calls that handlers serve, for
// [connect.WithInterceptors]: unary ones and streams. The engine nil stands for
// [penstock.Default].
func ServerInterceptor(engine *core.Engine, options Options) connect.Interceptor {
	return &serverInterceptor{newGate(engine, options, true)}
}

type serverInterceptor struct{ *gate }

// WrapUnary guards unary calls.
func (g *serverInterceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		if request.Spec().IsClient {
			return nil, connect.NewError(connect.CodeInternal, errWrongSide)
		}
		var guard core.Guard
		c := g.unary(ctx, request)
		defer g.release(c)
		ctx, p := g.inboundPriority(ctx, c)
		from := rpc.CallerOf(ctx)
		if err := g.enter(ctx, &guard, c, p); err != nil {
			return nil, err
		}
		var response connect.AnyResponse
		err := g.Serve(ctx, from, &guard, func(ctx context.Context) (err error) {
			response, err = next(ctx, request)
			return err
		})
		if err != nil {
			return nil, withFields(g.passOn(c, err), c.fields)
		}
		if len(c.fields) > 0 && response != nil {
			maps.Copy(response.Header(), c.fields)
		}
		return response, nil
	}
}

// WrapStreamingHandler guards streams: each is one call, which lasts until its handler
// returns. Those whose server sends a stream are long-lived, see [core.Guard.MarkLongLived].
func (g *serverInterceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		var guard core.Guard
		c := &call{
			Call: Call{Spec: conn.Spec(), Peer: conn.Peer(), Header: conn.RequestHeader()},
			ctx:  ctx, clients: g.clients,
		}
		ctx, p := g.inboundPriority(ctx, c)
		from := rpc.CallerOf(ctx)
		if err := g.enter(ctx, &guard, c, p); err != nil {
			return err
		}
		rpc.Prepare(&guard, func() {
			if c.Spec.StreamType&connect.StreamTypeServer != 0 {
				guard.MarkLongLived()
			}
			maps.Copy(conn.ResponseHeader(), c.fields)
		})
		err := g.Serve(ctx, from, &guard, func(ctx context.Context) error { return next(ctx, conn) })
		if err != nil {
			return g.passOn(c, err)
		}
		return nil
	}
}

// WrapStreamingClient refuses all streams of clients, which need a [ClientInterceptor].
func (g *serverInterceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		return refusedStream(next(ctx, spec), connect.NewError(connect.CodeInternal, errWrongSide))
	}
}
