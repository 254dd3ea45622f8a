package penstockgrpc

import (
	"context"
	"math/rand/v2"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/attribute"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// optionCount is how many options a call has at most, with one of [Options.Attributes].
const optionCount = 7

// gate is what all interceptors use: the engine and the options.
type gate struct {
	rpc.Gate
	options  Options
	refusals *rpc.Refusals[[]*entryError] // of each some with different waits
	noRetry  metadata.MD                  // the trailer that forbids retries; shared by calls

	attribute func(ctx context.Context, key string) rule.Attribute
	clients   *serverAttributes // nil at clients

	priorityKey string // in lower case; "" if none is used
}

func newGate(engine *core.Engine, options Options, inbound bool) *gate {
	if engine == nil {
		engine = penstock.Default()
	}
	if options.Resource == nil {
		options.Resource = func(_ context.Context, fullMethod string) string { return fullMethod }
	}
	if options.Failure == nil {
		options.Failure = IsFailure
	}
	g := &gate{options: options, attribute: clientAttribute, noRetry: metadata.MD{pushbackKey: {"-1"}}}
	g.Gate = rpc.Gate{Engine: engine, Inbound: inbound, CodeOf: codeOf, NewError: newError, Failure: options.Failure}
	g.refusals = rpc.NewRefusals(g.refusalsOf)
	g.priorityKey = strings.ToLower(options.PriorityKey)
	if inbound {
		g.clients = newServerAttributes(options.Clients)
		g.attribute = g.clients.of
	}
	return g
}

// spread is how the waits of refused calls differ, nil if they do not: clients know theirs.
func (g *gate) spread() *nethttp.Spread {
	if !g.Inbound || g.options.Spread.Share < 0 {
		return nil
	}
	return &g.options.Spread
}

// refusalsOf returns the errors that a refusal becomes, each of which has a wait of its own.
func (g *gate) refusalsOf(block *core.BlockError) []*entryError {
	waits := 1
	if _, known := rpc.RetryAfter(block); known && g.spread() != nil {
		waits = 16
	}
	errs := make([]*entryError, waits)
	for i := range errs {
		errs[i] = &entryError{cause: block, hideRules: !g.options.ShowRules, spread: g.spread()}
	}
	return errs
}

// enter enters a call. If the call is not to be guarded, the guard stays the zero
// Guard, whose methods do nothing. It returns the error for the caller, and the
// refusal if there was one.
func (g *gate) enter(
	ctx context.Context, guard *core.Guard, fullMethod string, request any, p rule.Priority,
) (refusal *core.BlockError, err error) {
	resource := g.options.Resource(ctx, fullMethod)
	if resource == "" {
		return nil, nil
	}
	var few [optionCount]core.Option
	method, _ := attribute.Text(fullMethod).Text()
	opts := append(few[:0], core.ContextAttributes(g.attribute), core.String("method", method))
	if g.Inbound {
		opts = append(opts, core.Inbound())
	}
	if p != rule.PriorityNormal {
		opts = append(opts, core.Priority(p))
	}
	if g.options.Origin != nil {
		opts = append(opts, core.Origin(g.options.Origin(ctx)))
	}
	if g.options.Tokens != nil {
		opts = append(opts, core.Tokens(g.options.Tokens(ctx, fullMethod, request)))
	}
	if g.options.Attributes != nil {
		opts = append(opts, g.options.Attributes(ctx, fullMethod, request)...)
	}
	if refusal, err = g.Enter(ctx, guard, resource, opts); err != nil {
		return refusal, g.answer(ctx, fullMethod, refusal, err)
	}
	return nil, nil
}

// answer returns the error of a call that did not pass.
func (g *gate) answer(ctx context.Context, fullMethod string, block *core.BlockError, err error) error {
	var answer error
	switch {
	case block != nil && g.options.Blocked != nil:
		answer = g.options.Blocked(ctx, fullMethod, block)
	case block == nil && g.options.EntryError != nil:
		answer = g.options.EntryError(ctx, fullMethod, err)
	}
	switch {
	case answer != nil:
		return answer
	case err == error(block): //nolint:errorlint // not that of a throttle, which wraps one
		errs := g.refusals.Of(block)
		return errs[rand.IntN(len(errs))] //nolint:gosec // which of the waits it is need not be secret
	}
	return &entryError{cause: err, hideRules: !g.options.ShowRules}
}
