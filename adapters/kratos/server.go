package penstockkratos

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-kratos/kratos/v2/middleware"
	"github.com/go-kratos/kratos/v2/transport"
	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// pushbackKey is the trailer that tells clients of gRPC with a retry policy not to retry.
const pushbackKey = "grpc-retry-pushback-ms"

// Server returns a middleware that guards the calls that servers serve, over HTTP and gRPC. The
// engine nil stands for [penstock.Default].
//
// Put it after a middleware that recovers from panics, and before those that should not run
// for refused calls.
func Server(engine *core.Engine, options Options) middleware.Middleware {
	g := newGate(engine, options, true)
	return func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, request any) (any, error) {
			var guard core.Guard
			c := g.newCall(ctx)
			ctx, p := g.inboundPriority(ctx, &c)
			from := rpc.CallerOf(ctx)
			if err := g.enter(ctx, &guard, &c, request, p); err != nil {
				return nil, err
			}
			var reply any
			err := g.Serve(ctx, from, &guard, func(ctx context.Context) (err error) {
				reply, err = next(ctx, request)
				return err
			})
			if err != nil {
				err = g.passOn(&c, err)
			}
			return reply, err
		}
	}
}

// passOn returns the error of a call whose handler ended with err. If that is a refusal made by
// [Error] or by a guarded client, it tells the client so, and names no rule if those are to be
// hidden.
func (g *gate) passOn(c *call, err error) error {
	var refused *entryError
	if !errors.As(err, &refused) || refused.block == nil {
		return err
	}
	g.tell(c, refused.block, func(fields http.Header) { g.answers.SetRetryAfter(fields, refused.block) })
	if refused.hidden == g.options.ShowRules {
		return newError(err, refused.block, !g.options.ShowRules)
	}
	return err
}

// setFields sets the fields of an answer that set sets.
func setFields(header transport.Header, set func(fields http.Header)) {
	fields := make(http.Header)
	set(fields)
	for name, values := range fields {
		header.Set(name, values[0])
	}
}

// tell tells the client of a refusal by what its protocol has beside the error: header fields,
// which set sets, or a trailer. A server that fails on purpose says nothing.
func (g *gate) tell(c *call, block *core.BlockError, set func(fields http.Header)) {
	if c.transport == nil || block.Reason == rule.Injected {
		return
	}
	switch c.transport.Kind() {
	case transport.KindHTTP:
		setFields(c.transport.ReplyHeader(), set)
	case transport.KindGRPC:
		if stream := grpc.ServerTransportStreamFromContext(c.ctx); stream != nil {
			_ = stream.SetTrailer(g.noRetry) // fails where no client could read it
		}
	}
}
