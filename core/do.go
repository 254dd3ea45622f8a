package core

import (
	"context"

	"github.com/penstock-go/penstock/core/internal/call"
)

// Do runs fn as a guarded call of the resource, with a context in which [GuardFrom] finds its
// guard, see also [Guard.Context]. If the call is refused, Do returns that
// error and does not run fn; else it returns the error of fn. [Config.IsFailure] decides
// whether that error is a failure. A panic of fn is a failure, and is passed on.
func (e *Engine) Do(ctx context.Context, resource string, fn func(context.Context) error, opts ...Option) error {
	_, err := Call(ctx, e, resource, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, fn(ctx)
	}, opts...)
	return err
}

// Call is [Engine.Do] for a function that returns a value.
func Call[T any](ctx context.Context, e *Engine, resource string, fn func(context.Context) (T, error), opts ...Option) (T, error) {
	guard, err := e.Entry(ctx, resource, opts...)
	if err != nil {
		var none T
		return none, err
	}
	guard.mark(call.Failed) // unless fn returns
	call := e.contexts.New(ctx, &guard)
	defer call.guard.Exit()
	defer call.End()
	value, err := fn(call)
	call.End()
	call.guard.ended(err)
	return value, err
}
