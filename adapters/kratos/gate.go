package penstockkratos

import (
	"context"
	"net/http"
	"runtime"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Unmatched is the resource of calls without an operation, such as those of a test that runs
// a middleware without a transport.
const Unmatched = nethttp.Unmatched

// optionCount is how many options a call has at most, with one of [Options.Attributes].
const optionCount = 6

// gate is what the middlewares of both sides use: the engine and the options.
type gate struct {
	engine  *core.Engine
	options Options
	inbound bool

	clients *clientip.Resolver // nil at clients
	answers *nethttp.Answers   // nil at clients
	trust   priority.Trust
}

func newGate(engine *core.Engine, options Options, inbound bool) *gate {
	if engine == nil {
		engine = penstock.Default()
	}
	if options.Resource == nil {
		options.Resource = func(_ context.Context, operation string) string {
			if operation == "" {
				return Unmatched
			}
			return operation
		}
	}
	if options.Failure == nil {
		options.Failure = IsFailure
	}
	g := &gate{engine: engine, options: options, inbound: inbound}
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

// enter enters a call. If the call is not to be guarded, the guard stays the zero Guard, whose
// methods do nothing. It returns the error for the caller.
func (g *gate) enter(ctx context.Context, guard *core.Guard, c *call, request any, p rule.Priority) error {
	resource := g.options.Resource(ctx, c.operation)
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
		origin = g.options.Origin(ctx)
		opts = append(opts, core.Origin(origin))
	}
	if g.options.Tokens != nil {
		opts = append(opts, core.Tokens(g.options.Tokens(ctx, c.operation, request)))
	}
	if g.options.Attributes != nil {
		opts = append(opts, g.options.Attributes(ctx, c.operation, request)...)
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

// answer returns the error of a call that did not pass. On a server, it tells the client of a
// refusal by what its protocol has beside the error.
func (g *gate) answer(ctx context.Context, c *call, err error, origin string) error {
	block, _ := err.(*core.BlockError) //nolint:errorlint // Entry does not wrap it, and errors.As allocates
	if block != nil && g.inbound {
		fields := make(http.Header)
		if block.Reason != rule.Injected { // a server that fails says nothing either
			g.answers.SetRefused(fields, block, origin)
		}
		c.tell(block, fields)
	}
	switch {
	case block != nil && g.options.Blocked != nil:
		if answer := g.options.Blocked(ctx, c.operation, block); answer != nil {
			return answer
		}
	case block == nil && g.options.EntryError != nil:
		if answer := g.options.EntryError(ctx, c.operation, err); answer != nil {
			return answer
		}
	}
	return newError(err, block, g.options.HideRules)
}
