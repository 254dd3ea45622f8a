package penstockgrpc

import (
	"context"
	"errors"
	"runtime"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/attribute"
	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// errPanicked is the failure of a call that panicked.
var errPanicked = errors.New("penstockgrpc: the guarded call panicked")

// optionCount is how many options a call has at most, with one of [Options.Attributes].
const optionCount = 7

// gate is what all interceptors use: the engine and the options.
type gate struct {
	engine  *core.Engine
	options Options
	inbound bool

	attribute func(ctx context.Context, key string) rule.Attribute
	clients   *serverAttributes // nil at clients

	priorityKey string // in lower case; "" if none is used
	trust       priority.Trust
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
	g := &gate{engine: engine, options: options, inbound: inbound, attribute: clientAttribute}
	g.priorityKey, g.trust = strings.ToLower(options.PriorityKey), priority.NewTrust(options.PriorityCallers)
	if inbound {
		g.clients = newServerAttributes(options.clients())
		g.attribute = g.clients.of
	}
	return g
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
	opts := make([]core.Option, 0, optionCount)
	method, _ := attribute.Text(fullMethod).Text()
	opts = append(opts, core.ContextAttributes(g.attribute), core.String("method", method))
	if g.inbound {
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
	if *guard, err = g.engine.Entry(ctx, resource, opts...); err != nil {
		refusal, _ = err.(*core.BlockError) //nolint:errorlint // Entry does not wrap it, and errors.As allocates
		return refusal, g.answer(ctx, fullMethod, refusal, err)
	}
	if g.inbound {
		runtime.Gosched() // as nethttp does: calls that wait for a processor come to their rules first
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
	if answer != nil {
		return answer
	}
	return &entryError{err, g.options.HideRules}
}

// call runs a call that passed. It exits the guard also if the call panics, and
// passes the panic on.
func (g *gate) call(from caller, guard *core.Guard, fn func() error) error {
	failure := errPanicked // unless fn returns
	defer guard.Exit()     // also if Failure panics
	defer func() { g.markOutcome(guard, from, failure) }()
	err := fn()
	failure = err
	return err
}

// markOutcome marks how a call ended that ended with err: as failed, or as one that does
// not count if its caller cancelled it or a guard further down refused it.
func (g *gate) markOutcome(guard *core.Guard, from caller, err error) {
	err = g.outcome(from, err)
	canceled := codeOf(err) == codes.Canceled
	switch {
	case err == nil:
		if g.inbound && from.ctx.Err() != nil {
			guard.MarkIgnored() // nobody wants the reply any more
		}
	case errors.Is(err, errPanicked) && !canceled, g.options.Failure(err):
		guard.MarkFailed()
	case canceled, core.IsRefusal(err):
		guard.MarkIgnored()
	}
}
