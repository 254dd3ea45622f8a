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
			ctx = g.withLoad(ctx, &guard)
			err = g.Call(from, &guard, func() (err error) {
				reply, err = handler(guard.Context(ctx), request)
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
				guard.MarkLongLived()
			}
			ctx = g.withLoad(ctx, &guard)
			err = g.Call(from, &guard, func() error { return handler(service, withContext(stream, guard.Context(ctx))) })
			refusal, err = g.refusalIn(err)
		}
		if refusal != nil {
			stream.SetTrailer(g.pushback(ctx, refusal))
		}
		return err
	}
}

// withLoad measures the load of the resource of a call that has passed, and returns the context for its
// handler.
func (g *gate) withLoad(ctx context.Context, guard *core.Guard) context.Context {
	if !g.options.ReportLoad {
		return ctx
	}
	guard.Load()
	return guard.ContextWithLoad(ctx)
}
