package penstockgrpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/core"
)

// UnaryServerInterceptor returns an interceptor that guards the unary calls that
// a server serves. The engine nil stands for [penstock.Default].
func UnaryServerInterceptor(engine *core.Engine, options Options) grpc.UnaryServerInterceptor {
	g := newGate(engine, options, true)
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		var guard core.Guard
		if err := g.enter(ctx, &guard, info.FullMethod, request); err != nil {
			return nil, err
		}
		var reply any
		err := g.call(&guard, func() (err error) {
			reply, err = handler(ctx, request)
			return err
		})
		return reply, err
	}
}

// StreamServerInterceptor returns an interceptor that guards the streams that a
// server serves: each is one call, which lasts until its handler returns. The
// engine nil stands for [penstock.Default].
func StreamServerInterceptor(engine *core.Engine, options Options) grpc.StreamServerInterceptor {
	g := newGate(engine, options, true)
	return func(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		var guard core.Guard
		if err := g.enter(stream.Context(), &guard, info.FullMethod, nil); err != nil {
			return err
		}
		return g.call(&guard, func() error { return handler(service, stream) })
	}
}
