package core

import (
	"cmp"
	"log/slog"
	"math"
	"reflect"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/core/internal/lines"
	"github.com/penstock-go/penstock/core/internal/membership"
	"github.com/penstock-go/penstock/core/internal/registry"
	"github.com/penstock-go/penstock/core/internal/signals"
	"github.com/penstock-go/penstock/core/internal/sleep"
	"github.com/penstock-go/penstock/core/internal/sources"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// Engine guards the resources of a service by the rules in force. It is made by
// [New], is safe for concurrent use, and starts no goroutine but one for each
// source that it follows and, while something waits to be logged, one for that, two that
// sample signals while rules read any, one that leases tokens while rules share limits with
// other instances, and one that ends forced states while some have a time.
type Engine struct {
	callEnv
	limiters limiterMaker

	exempt  func(name string) bool // nil if no name is
	lists   *list.Registry
	signals *signals.Set
	fleet   membership.Membership

	contexts CallContexts // of functions that Do runs
	present  engineLoad

	rejections atomic.Uint64 // documents rejected
	listStates listStates    // of which there are events

	forcedLines lines.Budget

	rules   ruleStore
	domains atomic.Pointer[map[string]rules.Domain] // that are served; nil for none
	sources sources.List
	running sleep.Goroutines
}

// New returns an engine without rules.
func New(config Config) *Engine {
	if config.Clock == nil {
		config.Clock = clock.System()
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if config.MaxResources <= 0 {
		config.MaxResources = defaultMaxResources
	}
	if config.Lists == nil {
		config.Lists = list.NewRegistry()
	}
	config.Lists.LimitRemoval(config.MaxRemoval, cmp.Or(config.RemovalWindow, defaultRemovalWindow), config.Clock)
	e := &Engine{lists: config.Lists, exempt: exemptions(&config)}
	e.init(&config)
	e.signals = e.newSignals(&config)
	if mistake := rule.CheckName(config.Fleet.Instance); mistake != "" {
		panic("core: Config.Fleet.Instance " + mistake)
	}
	e.fleet.Init(config.Fleet, config.Clock, e.fleetLogger(), config.Seed)
	e.rules.init(config, e.tries(&config))
	e.limiters.init(&e.callEnv, &config, e.signals, e.Fleet())
	e.resources.Init(registry.Config[callEnv]{
		Env: &e.callEnv, Clock: e.clock, Most: config.MaxResources, Overflow: rule.OtherResources, NoRules: &e.noRules, Plans: &e.limiters,
		Full: func(name string) { e.warnOfOverflow(name, config.MaxResources) },
	})
	e.sources.Init(sources.Config{
		Clock: e.clock, Log: e.log, Sleepers: &e.sleepers, Go: e.running.Go, Mu: &e.rules.mu, Note: e.noteSource,
	})
	e.initRecorder(config.Recorder)
	return e
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
	if e.generation.Swap(inforce.Closed) != inforce.Closed {
		close(e.closed)
		e.sleepers.Close()
		e.sources.Cancel()
		e.signals.Cancel()
		e.fleet.Close()
	}
	e.rules.mu.Unlock()
	e.running.Wait()
	e.signals.AwaitSource()
	e.journal.Flush(0, true)
}

// Clock returns the clock that the engine runs on.
func (e *Engine) Clock() clock.Clock { return e.clock }

// Kinds returns the kinds of rules that the engine knows, in the order of documents.
func (e *Engine) Kinds() []rule.Definition { return e.rules.book.Kinds() }

// Revision returns the revision of the rule set in force, that of [Status], without
// a lock: for callers that remember what they computed from the rules. It grows
// with every change; that of a closed engine is the greatest uint64.
func (e *Engine) Revision() uint64 { return e.generation.Load() }

// newSignals returns the signals that rules of the engine read.
func (e *Engine) newSignals(config *Config) *signals.Set {
	return signals.New(signals.Config{
		Source: config.Signals, Interval: cmp.Or(config.SignalInterval, defaultSignalInterval),
		Clock: e.clock, Closed: e.closed, Start: e.running.Go, Report: e.reportSignal,
	})
}

// reportSignal logs that a signal can be read again, or not any more.
func (e *callEnv) reportSignal(c signals.Change) {
	name, rules := slog.String("signal", string(c.Signal)), slog.Any("rules", c.Rules)
	if c.Err == nil {
		e.log.Info("penstock: a signal can be read again", name, rules)
		e.events.add(Event{At: e.clock.Now(), Type: eventSignal, Source: string(c.Signal), To: "known"})
		return
	}
	e.log.Error("penstock: a signal cannot be read, rules that need it let calls pass",
		name, rules, slog.Any("error", c.Err))
	e.events.add(Event{At: e.clock.Now(), Type: eventSignal, Source: string(c.Signal), To: "unknown", Err: c.Err.Error()})
}
