package penstockgrpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// inboundPriority returns how important a call of a server is, and its context with that if
// somebody says it.
func (g *gate) inboundPriority(ctx context.Context, fullMethod string) (context.Context, rule.Priority) {
	if g.priorityKey != "" {
		values := metadata.ValueFromIncomingContext(ctx, g.priorityKey)
		if p, ok := g.clients.clients.Priority(values, g.trusted(ctx), g.caller(ctx)); ok {
			return core.ContextWithPriority(ctx, p), p
		}
	}
	if g.options.Priority != nil {
		p := g.options.Priority(ctx, fullMethod)
		return core.ContextWithPriority(ctx, p), p
	}
	return ctx, rule.PriorityNormal
}

// trusted returns a function that asks PriorityTrust, nil if that is not set.
func (g *gate) trusted(ctx context.Context) func() (rule.Priority, bool) {
	if g.options.PriorityTrust == nil {
		return nil
	}
	return func() (rule.Priority, bool) { return g.options.PriorityTrust(ctx) }
}

func (g *gate) caller(ctx context.Context) func() clientip.Address {
	return func() clientip.Address { return g.clients.client(ctx) }
}

// outboundPriority returns the priority of the context of a call that a client makes, and the
// context with it in the metadata; without a priority, nothing is in the metadata.
func (g *gate) outboundPriority(ctx context.Context) (context.Context, rule.Priority) {
	p, known := core.PriorityFromContext(ctx)
	if g.priorityKey == "" {
		return ctx, p
	}
	md, _ := metadata.FromOutgoingContext(ctx) // a copy
	if _, there := md[g.priorityKey]; !there && !known {
		return ctx, p
	}
	if md == nil {
		md = metadata.MD{}
	}
	delete(md, g.priorityKey)
	if known {
		md[g.priorityKey] = []string{p.String()}
	}
	return metadata.NewOutgoingContext(ctx, md), p
}

// withContext returns a stream of a server with another context.
func withContext(stream grpc.ServerStream, ctx context.Context) grpc.ServerStream { //nolint:revive // of the stream
	if ctx == stream.Context() {
		return stream
	}
	return &contextStream{stream, ctx}
}

type contextStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context returns the other context.
func (s *contextStream) Context() context.Context { return s.ctx }
