package penstockconnect

import (
	"context"
	"net/http"
	"sync"

	"connectrpc.com/connect"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// optionCount is how many options a call has at most, with one of [Options.Attributes].
const optionCount = 6

// gate is what both interceptors use: the engine and the options.
type gate struct {
	rpc.Gate
	options  Options
	refusals *rpc.Refusals[*refusal]
	calls    sync.Pool // of unary calls that have ended

	clients *clientip.Resolver // nil at clients
	answers *nethttp.Answers   // nil at clients
	noRetry []string           // the value of pushbackField; shared by calls

	priorityField string // in canonical form; "" if none is used
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
	options.ShowRules = options.ShowRules || options.Fields.ShowRules
	g := &gate{options: options, noRetry: []string{"-1"}}
	g.Gate = rpc.Gate{Engine: engine, Inbound: inbound, CodeOf: codeOf, NewError: newEndError, Failure: options.Failure}
	g.refusals = rpc.NewRefusals(func(block *core.BlockError) *refusal { return newRefusal(block, block, !options.ShowRules) })
	g.calls.New = func() any { return new(call) }
	g.priorityField = http.CanonicalHeaderKey(options.PriorityKey)
	if inbound {
		g.clients = clientip.New(options.Clients)
		fields := options.Fields
		fields.ShowRules = options.ShowRules
		g.answers = nethttp.NewAnswers(engine, fields, options.Spread)
	}
	return g
}

// unary returns a unary call. It is to be released when the call has ended.
func (g *gate) unary(ctx context.Context, request connect.AnyRequest) *call {
	c := g.calls.Get().(*call)
	*c = call{
		Call: Call{Spec: request.Spec(), Peer: request.Peer(), Header: request.Header(), Message: request.Any()},
		ctx:  ctx, clients: g.clients,
	}
	return c
}

// release takes a call back that [gate.unary] has returned.
func (g *gate) release(c *call) {
	*c = call{}
	g.calls.Put(c)
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
	if g.Inbound {
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
	block, err := g.Enter(ctx, guard, resource, opts)
	if err != nil {
		return g.answer(ctx, c, block, err, origin, opts)
	}
	if g.Inbound && g.options.Fields.Always && c.Peer.Protocol == connect.ProtocolConnect {
		g.describe(c, guard, resource, origin, opts)
	}
	return nil
}

// describe makes the RateLimit fields of the answer to a call that passed.
func (g *gate) describe(c *call, guard *core.Guard, resource, origin string, opts []core.Option) {
	rpc.Prepare(guard, func() {
		c.fields = make(http.Header)
		g.answers.SetPassed(c.fields, resource, origin, opts...)
	})
}

// answer returns the error of a call that did not pass.
func (g *gate) answer(ctx context.Context, c *call, block *core.BlockError, err error, origin string, opts []core.Option) error {
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
		return g.refuse(c, block, origin, opts)
	}
	return newError(err, nil, false)
}
