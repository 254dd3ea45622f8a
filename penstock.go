package penstock

import (
	"context"
	"sync/atomic"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/signal"
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

// ErrBlocked matches, with errors.Is, every [BlockError].
var ErrBlocked = core.ErrBlocked

// defaultEngine is the process-wide engine: the one that SetDefault was given, or one
// that is made when it is first asked for.
//
//nolint:gochecknoglobals // the one exception: the process-wide engine
var defaultEngine atomic.Pointer[core.Engine]

// Default returns the process-wide engine, which the functions of this package use,
// and adapters and metrics that are given none. Unless [SetDefault] gave one, it is
// made on first use, with the signals of the system and defaults for the rest.
func Default() *core.Engine {
	if e := defaultEngine.Load(); e != nil {
		return e
	}
	made := core.New(core.Config{Signals: signal.System()})
	if !defaultEngine.CompareAndSwap(nil, made) {
		made.Close() // another goroutine was quicker
	}
	return defaultEngine.Load()
}

// SetDefault makes an engine the process-wide one, which must not be nil. The one
// before is not closed. Call it at the start of the program: what has asked for the
// engine before, such as an adapter, keeps the one that it got.
func SetDefault(e *core.Engine) {
	if e == nil {
		panic("penstock: SetDefault(nil): give it an engine")
	}
	defaultEngine.Store(e)
}

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

// String says that an attribute of the call has a value, for rules that look at it.
func String(key, value string) Option { return core.String(key, value) }

// Int is [String] for an attribute that is a whole number.
func Int(key string, value int64) Option { return core.Int(key, value) }

// Bool is [String] for an attribute that is true or false.
func Bool(key string, value bool) Option { return core.Bool(key, value) }

// Priority says how important the call is.
func Priority(p rule.Priority) Option { return core.Priority(p) }

// NoWait has a call refused that would wait.
func NoWait() Option { return core.NoWait() }

// Origin names who is calling.
func Origin(caller string) Option { return core.Origin(caller) }

// Inbound says that the call comes from outside.
func Inbound() Option { return core.Inbound() }
