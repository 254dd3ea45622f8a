package penstock

import (
	"context"
	"sync"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// What a caller needs, so that one import serves. See the package core.
type (
	// Guard stands for one call that was let through.
	Guard = core.Guard
	// BlockError says that a call was refused, by what, and when to try again.
	BlockError = core.BlockError
	// Option says something about one call.
	Option = core.Option
	// Rules is a set of rules.
	Rules = rules.Set
	// FlowRule limits how many calls pass in a time.
	FlowRule = flow.Rule
)

var (
	// ErrBlocked matches, with errors.Is, every [BlockError].
	ErrBlocked = core.ErrBlocked
	// ErrClosed is returned by an engine that was closed.
	ErrClosed = core.ErrClosed
)

// defaultEngine is made when it is first asked for.
//
//nolint:gochecknoglobals // the one exception: the process-wide engine
var defaultEngine = sync.OnceValue(func() *core.Engine { return core.New(core.Config{}) })

// Default returns the process-wide engine, which adapters and metrics are
// handed. It is made on first use.
func Default() *core.Engine { return defaultEngine() }

// Entry asks the default engine to make a call. See [core.Engine.Entry].
func Entry(ctx context.Context, resource string, opts ...Option) (Guard, error) {
	return Default().Entry(ctx, resource, opts...)
}

// Do runs fn as a guarded call. See [core.Engine.Do].
func Do(ctx context.Context, resource string, fn func(context.Context) error, opts ...Option) error {
	return Default().Do(ctx, resource, fn, opts...)
}

// Load puts the rules that come from code in force. See [core.Engine.Load].
func Load(set Rules) error { return Default().Load(set) }

// Follow keeps the rules of a source applied until ctx ends. See
// [core.Engine.Follow].
func Follow(ctx context.Context, source core.Source) error { return Default().Follow(ctx, source) }

// Ready waits until the rules of every source that is followed are in force.
// See [core.Engine.Ready].
func Ready(ctx context.Context) error { return Default().Ready(ctx) }

// Tokens makes a call take n tokens, at least 1, instead of one.
func Tokens(n int) Option { return core.Tokens(n) }

// Args hands the arguments of the call to the checks: strings, booleans,
// numbers.
func Args(values ...any) Option { return core.Args(values...) }

// Origin names who is calling.
func Origin(caller string) Option { return core.Origin(caller) }

// Inbound says that the call comes from outside.
func Inbound() Option { return core.Inbound() }
