package core

import (
	"log/slog"
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
	// What most calls read is in the first 64 bytes.
	clock      clock.Clock
	endsSlowly bool // the clock is code of the program, which may panic, or the observer learns of ends

	// generation numbers the rule set in force; a call acts by one generation
	// throughout. It is what swaps a set as a whole: see plan.
	generation atomic.Uint64
	recorder   recorder.Switch // nil unless calls are recorded

	log       *slog.Logger
	observer  Observer
	isFailure func(error) bool
	pools     call.Pools

	linksUntil atomic.Int64   // the clock.Instant from which on Guard.Context links no calls
	closed     chan struct{}  // closed by Close, to wake what waits
	sleepers   sleep.Sleepers // woken by Close, and when something is switched: calls that wait look again

	noRules inforce.Plan // of resources without rules

	journal      journal.Journal
	events       eventLog
	refusalLines lines.Budget

	resources registry.Registry[callEnv]
}

func (e *callEnv) isClosed() bool { return e.generation.Load() == inforce.Closed }

// observesPasses says whether the observer learns of calls that pass.
func (e *callEnv) observesPasses() bool { return e.observer.Passed != nil }
