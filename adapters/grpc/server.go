package penstockgrpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
)

// UnaryServerInterceptor returns an interceptor that guards the unary calls that
// a server serves. The engine nil stands for [penstock.Default].
func UnaryServerInterceptor(engine *core.Engine, options Options) grpc.UnaryServerInterceptor {
	g := newGate(engine, options, true)
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		var guard core.Guard
		ctx, p := g.inboundPriority(ctx, info.FullMethod)
		from := rpc.CallerOf(ctx)
		refusal, err := g.enter(ctx, &guard, info.FullMethod, request, p)
		var reply any
		if err == nil {
			g.measureLoad(&guard)
			err = g.Serve(ctx, from, &guard, func(ctx context.Context) (err error) {
				reply, err = handler(ctx, request)
				return err
			})
			refusal, err = g.refusalIn(err)
		}
		if refusal != nil {
			if stream := grpc.ServerTransportStreamFromContext(ctx); stream != nil {
				_ = stream.SetTrailer(g.pushback(ctx, refusal)) // fails where no client could read it
			}
		}
		return reply, err
	}
}

// StreamServerInterceptor returns an interceptor that guards the streams that a
// server serves: each is one call, which lasts until its handler returns. Those whose
// server sends a stream are long-lived, see [core.Guard.MarkLongLived]. The engine nil
// stands for [penstock.Default].
func StreamServerInterceptor(engine *core.Engine, options Options) grpc.StreamServerInterceptor {
	g := newGate(engine, options, true)
	return func(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		var guard core.Guard
		ctx, p := g.inboundPriority(stream.Context(), info.FullMethod)
		from := rpc.CallerOf(ctx)
		refusal, err := g.enter(ctx, &guard, info.FullMethod, nil, p)
		if err == nil {
			if info.IsServerStream {
				rpc.Prepare(&guard, guard.MarkLongLived)
			}
			g.measureLoad(&guard)
			err = g.Serve(ctx, from, &guard, func(ctx context.Context) error { return handler(service, withContext(stream, ctx)) })
			refusal, err = g.refusalIn(err)
		}
		if refusal != nil {
			stream.SetTrailer(g.pushback(ctx, refusal))
		}
		return err
	}
}

// measureLoad measures the load of the resource of a call that has passed, if it is reported.
func (g *gate) measureLoad(guard *core.Guard) {
	if g.options.ReportLoad {
		rpc.Prepare(guard, func() { guard.Load() })
	}
}
