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
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
)

// Engine guards the resources of a service by the rules in force. It is made by
// [New], is safe for concurrent use, and starts no goroutine but one for each
// source that it follows and, while something waits to be logged, one for that, two that
// sample signals while rules read any, one that leases tokens while rules share limits with
// other instances, and one that ends forced states while some have a time.
type Engine struct {
	clock      clock.Clock
	endsSlowly bool // the clock is code of the program, which may panic, or the observer learns of ends
	log        *slog.Logger
	observer   Observer
	recorder   atomic.Pointer[recorder] // nil unless calls are recorded

	isFailure   func(error) bool
	exempt      func(name string) bool // nil if no name is
	lists       *list.Registry
	signals     signals
	fleet       fleetMember
	seed        uint64       // of what limiters choose at random; 0 for none
	contexts    CallContexts // of functions that Do runs
	records     sync.Pool    // of *guardRecord
	ticketLists sync.Pool    // of *[]rule.Ticket, for calls of many rules

	// generation numbers the rule set in force; a call acts by one generation
	// throughout. It is what swaps a set as a whole: see plan.
	generation atomic.Uint64
	linksUntil atomic.Int64  // the clock.Instant from which on Guard.Context links no calls
	closed     chan struct{} // closed by Close, to wake what waits
	resources  registry

	rejections atomic.Uint64 // documents rejected
	journal    journal
	events     eventLog
	present    engineLoad

	refusalLines, stateLines, warningLines, forcedLines lineBudget

	rules     ruleStore
	recorders recorders
	sources   sourceList
	running   sync.WaitGroup // the goroutines of the engine
}

// closedGeneration is the generation of an engine that was closed.
const closedGeneration = math.MaxUint64

// New returns an engine without rules.
func New(config Config) *Engine {
	if config.Clock == nil {
		config.Clock = clock.System()
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if config.MaxResources <= 0 {
		config.MaxResources = DefaultMaxResources
	}
	if config.Lists == nil {
		config.Lists = list.NewRegistry()
	}
	config.Lists.LimitRemoval(list.RemovalLimit{
		Share: config.MaxRemoval, Window: cmp.Or(config.RemovalWindow, DefaultRemovalWindow), Clock: config.Clock,
	})
	e := &Engine{
		clock:    config.Clock,
		log:      config.Logger,
		observer: config.Observer,
		lists:    config.Lists,
		seed:     config.Seed,
		exempt:   exemptions(&config),
		closed:   make(chan struct{}),

		endsSlowly: isForeign(config.Clock) || config.Observer.Ended != nil,
	}
	e.linksUntil.Store(math.MinInt64)
	if e.isFailure = config.IsFailure; e.isFailure == nil {
		e.isFailure = isFailure
	}
	e.journal.log, e.journal.rejections = e.log, make(map[ruleset.DocumentKey]*rejections)
	e.events.init(cmp.Or(config.MaxEvents, DefaultMaxEvents), e.clock.Now())
	e.resources.init(e, config.MaxResources)
	e.rules.init(config, e.try)
	e.signals.init(config)
	e.fleet.init(&config, e.fleetLogger())
	e.sources.init()
	if e.recorders.config = config.Recorder; config.Recorder != nil {
		e.ensureRecorder()
	}
	return e
}

// isForeign says whether a clock is none of package clock.
func isForeign(c clock.Clock) bool {
	t := reflect.TypeOf(c)
	return t.Kind() != reflect.Pointer || t.Elem().PkgPath() != reflect.TypeFor[clock.Instant]().PkgPath()
}

// Lists returns the lists that rules refer to by name. What is set there is in force at
// once.
func (e *Engine) Lists() *list.Registry { return e.lists }

// Close ends the engine: calls that wait and calls that come later get
// [ErrClosed], sources are no longer followed. Calls under way may
// still exit. Tokens that were leased from the fleet are handed back, for which Close waits
// no longer than [fleet.Config.Timeout]. It returns when every goroutine of the engine has
// ended, but waits no more than a second for a [SignalSource] that ignores the end of its
// context; a second Close does nothing but wait for the same.
func (e *Engine) Close() {
	e.rules.mu.Lock()
	if e.generation.Swap(closedGeneration) != closedGeneration {
		close(e.closed)
		e.sources.cancel()
		e.signals.cancel()
		e.fleet.close()
	}
	e.rules.mu.Unlock()
	e.running.Wait()
	e.signals.awaitSource()
	e.journal.flush(0, true)
}

func (e *Engine) isClosed() bool { return e.generation.Load() == closedGeneration }

// Clock returns the clock that the engine runs on.
func (e *Engine) Clock() clock.Clock { return e.clock }

// Kinds returns the kinds of rules that the engine knows, in the order of documents.
func (e *Engine) Kinds() []rule.Definition { return e.rules.book.Kinds() }

// Revision returns the revision of the rule set in force, that of [Status], without
// a lock: for callers that remember what they computed from the rules. It grows
// with every change; that of a closed engine is the greatest uint64.
func (e *Engine) Revision() uint64 { return e.generation.Load() }
