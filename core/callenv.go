package core

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/core/internal/journal"
	"github.com/penstock-go/penstock/core/internal/lines"
	"github.com/penstock-go/penstock/core/internal/recorder"
	"github.com/penstock-go/penstock/core/internal/registry"
	"github.com/penstock-go/penstock/core/internal/sleep"
)

// callEnv is what calls need of their engine, whatever their resource. All that an engine has points to
// the one that it has.
type callEnv struct {
	clock      clock.Clock
	endsSlowly bool // the clock is code of the program, which may panic, or the observer learns of ends
	log        *slog.Logger
	observer   Observer
	isFailure  func(error) bool

	recorder atomic.Pointer[recorder.Recorder] // nil unless calls are recorded
	pools    call.Pools

	// generation numbers the rule set in force; a call acts by one generation
	// throughout. It is what swaps a set as a whole: see plan.
	generation atomic.Uint64
	linksUntil atomic.Int64   // the clock.Instant from which on Guard.Context links no calls
	closed     chan struct{}  // closed by Close, to wake what waits
	sleepers   sleep.Sleepers // woken by Close, and when something is switched: calls that wait look again

	noRules inforce.Plan // of resources without rules

	journal      journal.Journal
	events       eventLog
	refusalLines lines.Budget

	resources registry.Registry[callEnv]
}

func (e *callEnv) init(config *Config) {
	e.clock, e.log, e.observer = config.Clock, config.Logger, config.Observer
	e.endsSlowly = isForeign(e.clock) || e.observer.Ended != nil
	if e.isFailure = config.IsFailure; e.isFailure == nil {
		e.isFailure = isFailure
	}
	e.sleepers.Init(e.clock)
	e.linksUntil.Store(math.MinInt64)
	e.closed = make(chan struct{})
	none := &e.noRules.Others
	none.IsFollowed = e.observesPasses()
	none.IsEmpty = !none.IsFollowed
	e.journal.Init(e.log)
	e.events.Init(cmp.Or(config.MaxEvents, defaultMaxEvents), e.clock.Now())
}

// isForeign says whether a clock is none of package clock.
func isForeign(c clock.Clock) bool {
	t := reflect.TypeOf(c)
	return t.Kind() != reflect.Pointer || t.Elem().PkgPath() != reflect.TypeFor[clock.Instant]().PkgPath()
}

func (e *callEnv) isClosed() bool { return e.generation.Load() == inforce.Closed }

// observesPasses says whether the observer learns of calls that pass.
func (e *callEnv) observesPasses() bool { return e.observer.Passed != nil }

// fleetLogger returns the logger of the fleet's member, whose lines become events, too.
func (e *callEnv) fleetLogger() *slog.Logger { return slog.New(&fleetLog{e.log.Handler(), e}) }

// fleetLog is a handler that makes events of the lines of the fleet.
type fleetLog struct {
	slog.Handler
	env *callEnv
}

// Enabled implements [slog.Handler].
func (f *fleetLog) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements [slog.Handler].
func (f *fleetLog) Handle(ctx context.Context, line slog.Record) error {
	e := Event{At: f.env.clock.Now(), Type: EventFleet, Text: strings.TrimPrefix(line.Message, "penstock: ")}
	line.Attrs(func(a slog.Attr) bool {
		switch {
		case a.Key == "error" || a.Key == "panic":
			e.Err = a.Value.String()
		case a.Key == "outages" && a.Value.Int64() > 1:
			e.Text += fmt.Sprintf(", %d times since this was told last", a.Value.Int64())
		}
		return true
	})
	f.env.events.add(e)
	if !f.Handler.Enabled(ctx, line.Level) {
		return nil
	}
	return f.Handler.Handle(ctx, line)
}
