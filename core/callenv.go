package core

import (
	"cmp"
	"log/slog"
	"math"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/ruleset"
)

// callEnv is what calls need of their engine, whatever their resource. All that an engine has points to
// the one that it has.
type callEnv struct {
	clock      clock.Clock
	endsSlowly bool // the clock is code of the program, which may panic, or the observer learns of ends
	log        *slog.Logger
	observer   Observer
	isFailure  func(error) bool

	recorder    atomic.Pointer[recorder] // nil unless calls are recorded
	records     sync.Pool                // of *guardRecord
	ticketLists sync.Pool                // of *[]rule.Ticket, for calls of many rules

	// generation numbers the rule set in force; a call acts by one generation
	// throughout. It is what swaps a set as a whole: see plan.
	generation atomic.Uint64
	linksUntil atomic.Int64  // the clock.Instant from which on Guard.Context links no calls
	closed     chan struct{} // closed by Close, to wake what waits
	sleepers   sleepers      // woken by Close, and when something is switched: calls that wait look again

	names    names          // for calls that do not find what they expect in their resource
	overflow *resourceStats // those that names beyond the bound share
	noRules  plan           // of resources without rules

	journal      journal
	events       eventLog
	refusalLines lineBudget
}

// names finds the resources by their names.
type names interface {
	// getOrAdd returns the resource of a name whose resource was evicted, or belongs to the overflow.
	getOrAdd(name string) *resource

	// stillOverflows says whether the resource is one of the overflow and its name still has no other.
	stillOverflows(r *resource) bool

	// countIfForgotten counts a refused call whose resource was evicted before it was counted there.
	countIfForgotten(r *resource, tokens int32)

	// switches returns what is switched off and on.
	switches() *switchTable
}

func (e *callEnv) init(config *Config) {
	e.clock, e.log, e.observer = config.Clock, config.Logger, config.Observer
	e.endsSlowly = isForeign(e.clock) || e.observer.Ended != nil
	if e.isFailure = config.IsFailure; e.isFailure == nil {
		e.isFailure = isFailure
	}
	e.linksUntil.Store(math.MinInt64)
	e.closed = make(chan struct{})
	none := &e.noRules.others
	none.isFollowed = e.observesPasses()
	none.isEmpty = !none.isFollowed
	e.journal.log, e.journal.rejections = e.log, make(map[ruleset.DocumentKey]*rejections)
	e.events.init(cmp.Or(config.MaxEvents, DefaultMaxEvents), e.clock.Now())
}

// isForeign says whether a clock is none of package clock.
func isForeign(c clock.Clock) bool {
	t := reflect.TypeOf(c)
	return t.Kind() != reflect.Pointer || t.Elem().PkgPath() != reflect.TypeFor[clock.Instant]().PkgPath()
}

func (e *callEnv) isClosed() bool { return e.generation.Load() == closedGeneration }
