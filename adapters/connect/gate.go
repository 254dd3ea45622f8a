package penstockconnect

import (
	"context"
	"net/http"
	"runtime"

	"connectrpc.com/connect"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// optionCount is how many options a call has at most, with one of [Options.Attributes].
const optionCount = 6

// gate is what both interceptors use: the engine and the options.
type gate struct {
	engine  *core.Engine
	options Options
	inbound bool

	clients *clientip.Resolver // nil at clients
	answers *nethttp.Answers   // nil at clients

	priorityField string // in canonical form; "" if none is used
	trust         priority.Trust
}

func newGate(engine *core.Engine, options Options, inbound bool) *gate {
	if engine == nil {
		engine = penstock.Default()
	}
	if options.Resource == nil {
		options.Resource = func(_ context.Context, call *Call) string { return call.Spec.Procedure }
	}
	if options.Failure == nil {
		options.Failure = IsFailure
	}
	g := &gate{engine: engine, options: options, inbound: inbound}
	g.priorityField = http.CanonicalHeaderKey(options.PriorityKey)
	g.trust = priority.NewTrust(options.PriorityCallers)
	if inbound {
		g.clients = clientip.New(options.clients())
		fields := nethttp.FieldsOnRefusal
		if options.HideRules {
			fields = nethttp.FieldsNever
		}
		g.answers = nethttp.NewAnswers(engine, fields)
	}
	return g
}

// unary returns a unary call.
func (g *gate) unary(ctx context.Context, request connect.AnyRequest) *call {
	return &call{
		Call: Call{Spec: request.Spec(), Peer: request.Peer(), Header: request.Header(), Message: request.Any()},
		ctx:  ctx, clients: g.clients,
	}
}

// enter enters a call. If the call is not to be guarded, the guard stays the zero Guard,
// whose methods do nothing. It returns the error for the caller.
func (g *gate) enter(ctx context.Context, guard *core.Guard, c *call, p rule.Priority) error {
	resource := g.options.Resource(ctx, &c.Call)
	if resource == "" {
		return nil
	}
	var few [optionCount]core.Option
	opts := append(few[:0], core.Attributes(attributeOf, c))
	if g.inbound {
		opts = append(opts, core.Inbound())
	}
	if p != rule.PriorityNormal {
		opts = append(opts, core.Priority(p))
	}
	origin := ""
	if g.options.Origin != nil {
		origin = g.options.Origin(ctx, &c.Call)
		opts = append(opts, core.Origin(origin))
	}
	if g.options.Tokens != nil {
		opts = append(opts, core.Tokens(g.options.Tokens(ctx, &c.Call)))
	}
	if g.options.Attributes != nil {
		opts = append(opts, g.options.Attributes(ctx, &c.Call)...)
	}
	var err error
	if *guard, err = g.engine.Entry(ctx, resource, opts...); err != nil {
		return g.answer(ctx, c, err, origin)
	}
	if g.inbound {
		runtime.Gosched() // as nethttp does: calls that wait for a processor come to their rules first
	}
	return nil
}

// answer returns the error of a call that did not pass.
func (g *gate) answer(ctx context.Context, c *call, err error, origin string) error {
	block, _ := err.(*core.BlockError) //nolint:errorlint // Entry does not wrap it, and errors.As allocates
	switch {
	case block != nil && g.options.Blocked != nil:
		if answer := g.options.Blocked(ctx, &c.Call, block); answer != nil {
			return answer
		}
	case block == nil && g.options.EntryError != nil:
		if answer := g.options.EntryError(ctx, &c.Call, err); answer != nil {
			return answer
		}
	}
	if block != nil {
		return g.refuse(c, block, origin)
	}
	return newError(err, nil, g.options.HideRules)
}
