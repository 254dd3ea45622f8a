package penstockgrpc

import (
	"context"
	"errors"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/core"
)

// errPanicked is the failure of a call that panicked.
var errPanicked = errors.New("penstockgrpc: the guarded call panicked")

// gate is what the interceptors have in common.
type gate struct {
	engine  *core.Engine
	options Options
	inbound bool
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
	return &gate{engine: engine, options: options, inbound: inbound}
}

// enter asks to make a call. The guard of one that is not to be guarded stays the
// zero Guard, which stands for nothing.
func (g *gate) enter(ctx context.Context, guard *core.Guard, fullMethod string, request any) (err error) {
	resource := g.options.Resource(ctx, fullMethod)
	if resource == "" {
		return nil
	}
	opts := make([]core.Option, 0, 3)
	if g.inbound {
		opts = append(opts, core.Inbound())
	}
	if g.options.Origin != nil {
		opts = append(opts, core.Origin(g.options.Origin(ctx)))
	}
	if g.options.Args != nil {
		opts = append(opts, core.Args(g.options.Args(ctx, fullMethod, request)...))
	}
	if *guard, err = g.engine.Entry(ctx, resource, opts...); err != nil {
		return g.refusal(ctx, fullMethod, err)
	}
	return nil
}

// refusal returns what a call ends with that Entry did not let through.
func (g *gate) refusal(ctx context.Context, fullMethod string, err error) error {
	var block *core.BlockError
	if g.options.Blocked != nil && errors.As(err, &block) {
		if answer := g.options.Blocked(ctx, fullMethod, block); answer != nil {
			return answer
		}
	}
	return &entryError{err}
}

// call makes a call that was let through. The guard is exited also when the call
// panics, which goes on.
func (g *gate) call(guard *core.Guard, fn func() error) error {
	failure := errPanicked // unless fn returns
	defer func() {
		guard.Fail(failure)
		guard.Exit()
	}()
	err := fn()
	failure = g.failure(err)
	return err
}

// failure returns the error of a call if it makes the call a failed one.
func (g *gate) failure(err error) error {
	if err != nil && g.options.Failure(err) {
		return err
	}
	return nil
}
