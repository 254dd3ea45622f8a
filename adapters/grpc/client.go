package penstockgrpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// UnaryClientInterceptor returns an interceptor that guards the unary calls that
// a client makes. The engine nil stands for [penstock.Default].
//
// In a chain, put an interceptor that retries before this one if each attempt is to
// count as a call, and after it if all attempts are to count as one.
func UnaryClientInterceptor(engine *core.Engine, options Options) grpc.UnaryClientInterceptor {
	g := newGate(engine, options, false)
	return func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
		invoker grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		ctx, p := g.outboundPriority(ctx)
		if !g.throttles() {
			return g.invoke(ctx, p, method, request, reply, conn, invoker, opts)
		}
		call, err := g.begin(ctx, method, conn, p)
		if err != nil {
			return err
		}
		var answer outgoing.Answer // to be set if the call is sent
		defer func() { call.End(answer) }()
		return g.invoke(ctx, p, method, request, reply, conn, g.listening(invoker, &answer), opts)
	}
}

// invoke makes a unary call of a client.
func (g *gate) invoke(ctx context.Context, p rule.Priority, method string, request, reply any,
	conn *grpc.ClientConn, invoker grpc.UnaryInvoker, opts []grpc.CallOption,
) error {
	var guard core.Guard
	from := rpc.CallerOf(ctx)
	if _, err := g.enter(ctx, &guard, method, request, p); err != nil {
		return err
	}
	return g.Call(from, &guard, func() error { return invoker(ctx, method, request, reply, conn, opts...) })
}

// StreamClientInterceptor returns an interceptor that guards the streams that a
// client opens: each is one call, which lasts as long as the stream. See the
// package's documentation for what ends one. The engine nil stands for
// [penstock.Default].
func StreamClientInterceptor(engine *core.Engine, options Options) grpc.StreamClientInterceptor {
	g := newGate(engine, options, false)
	return func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
		streamer grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		ctx, p := g.outboundPriority(ctx)
		s := &clientStream{gate: g, from: rpc.CallerOf(ctx), oneReply: !desc.ServerStreams}
		var err error
		if s.call, err = g.begin(ctx, method, conn, p); err != nil {
			return nil, err
		}
		if _, err := g.enter(ctx, &s.guard, method, nil, p); err != nil {
			s.call.End(outgoing.Answer{}) // it was not sent
			return nil, err
		}
		if desc.ServerStreams {
			rpc.Prepare(&s.guard, s.guard.MarkLongLived)
		}
		if err := s.open(desc, conn, method, streamer, opts); err != nil {
			return nil, err
		}
		return s, nil
	}
}
