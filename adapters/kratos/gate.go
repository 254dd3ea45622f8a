package penstockkratos

import (
	"context"
	"net/http"

	"github.com/go-kratos/kratos/v2/transport"
	"google.golang.org/grpc/metadata"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/rpc"
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
	rpc.Gate
	options  Options
	refusals *rpc.Refusals[*entryError]

	attribute func(ctx context.Context, key string) rule.Attribute
	clients   *clientip.Resolver // nil at clients
	answers   *nethttp.Answers   // nil at clients
	noRetry   metadata.MD        // the trailer that forbids retries; shared by calls
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
	options.ShowRules = options.ShowRules || options.Fields.ShowRules
	g := &gate{options: options, noRetry: metadata.MD{pushbackKey: {"-1"}}}
	g.Gate = rpc.Gate{Engine: engine, Inbound: inbound, CodeOf: rpcCode, NewError: newEndError, Failure: options.Failure}
	g.refusals = rpc.NewRefusals(func(block *core.BlockError) *entryError { return newError(block, block, !options.ShowRules) })
	g.attribute = g.attributeOf
	if inbound {
		g.clients = clientip.New(options.Clients)
		fields := options.Fields
		fields.ShowRules = options.ShowRules
		g.answers = nethttp.NewAnswers(engine, fields, options.Spread)
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
	opts := append(few[:0], core.ContextAttributes(g.attribute))
	if g.Inbound {
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
	block, err := g.Enter(ctx, guard, resource, opts)
	if err != nil {
		return g.answer(ctx, c, block, err, origin, opts)
	}
	if g.Inbound && g.options.Fields.Always && c.transport != nil && c.transport.Kind() == transport.KindHTTP {
		rpc.Prepare(guard, func() {
			setFields(c.transport.ReplyHeader(), func(fields http.Header) { g.answers.SetPassed(fields, resource, origin, opts...) })
		})
	}
	return nil
}

// answer returns the error of a call that did not pass. On a server, it tells the client of a
// refusal by what its protocol has beside the error.
func (g *gate) answer(ctx context.Context, c *call, block *core.BlockError, err error, origin string, opts []core.Option) error {
	if block == nil {
		if g.options.EntryError != nil {
			if answer := g.options.EntryError(ctx, c.operation, err); answer != nil {
				return answer
			}
		}
		return newError(err, nil, false)
	}
	if g.Inbound {
		g.tell(c, block, func(fields http.Header) { g.answers.SetRefused(fields, block, origin, opts...) })
	}
	if g.options.Blocked != nil {
		if answer := g.options.Blocked(ctx, c.operation, block); answer != nil {
			return answer
		}
	}
	return g.refusals.Of(block)
}
