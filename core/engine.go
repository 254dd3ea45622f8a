package core

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/ruleset"
	"github.com/penstock-go/penstock/rule"
)

// Engine guards the resources of a service by the rules in force. It is made by
// [New], is safe for concurrent use, and starts no goroutine but one for each
// source that it follows and, while something waits to be logged, one for that.
type Engine struct {
	clock    clock.Clock
	log      *slog.Logger
	observer Observer

	isFailure func(error) bool
	records   sync.Pool // of *guardRecord

	// generation numbers the rule set in force; a call acts by one generation
	// throughout. It is what swaps a set as a whole: see plan.
	generation atomic.Uint64
	closed     chan struct{} // closed by Close, to wake what waits
	resources  registry

	rejections atomic.Uint64 // documents rejected
	journal    journal

	rules   ruleStore
	sources sourceList
	running sync.WaitGroup // the goroutines of the engine
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
	e := &Engine{
		clock:    config.Clock,
		log:      config.Logger,
		observer: config.Observer,
		closed:   make(chan struct{}),
	}
	if e.isFailure = config.IsFailure; e.isFailure == nil {
		e.isFailure = isFailure
	}
	e.journal.log, e.journal.rejections = e.log, make(map[ruleset.DocumentKey]*rejections)
	e.resources.init(e, config.MaxResources)
	e.rules.init(config)
	e.sources.init()
	return e
}

// Close ends the engine: calls that wait and calls that come later get
// [ErrClosed], sources are no longer followed. Calls under way may
// still exit. Close returns when every goroutine of the engine has ended; a
// second Close does nothing but wait for the same.
func (e *Engine) Close() {
	e.rules.mu.Lock()
	if e.generation.Swap(closedGeneration) != closedGeneration {
		close(e.closed)
		e.sources.cancel()
	}
	e.rules.mu.Unlock()
	e.running.Wait()
	e.journal.flush(0, true)
}

func (e *Engine) isClosed() bool { return e.generation.Load() == closedGeneration }

// Clock returns the clock that the engine runs on.
func (e *Engine) Clock() clock.Clock { return e.clock }

// Kinds returns the kinds of rules that the engine knows, in the order of documents.
func (e *Engine) Kinds() []rule.Definition { return e.rules.book.Kinds() }

// Entry asks to make a call of the named resource. It returns a guard to be
// exited when the call has ended, or the reason why the call must not be made:
//
//   - a [*BlockError], which matches [ErrBlocked], when a rule refuses it;
//   - the error of ctx, when that ended while the call waited;
//   - [ErrClosed], or an error that matches [ErrInvalid].
//
// Entry waits only where a rule lets calls wait. A wait for which ctx leaves too
// little time is refused at once. A resource that no rule names passes and is
// counted.
func (e *Engine) Entry(ctx context.Context, resource string, opts ...Option) (Guard, error) {
	return e.enter(ctx, nil, resource, opts)
}

// Resource returns the resource of that name, to be entered without looking the
// name up each time.
func (e *Engine) Resource(name string) *Resource {
	r := &Resource{engine: e, name: name}
	r.present.Store(e.resources.get(name))
	return r
}

// Resource is a resource that was looked up once. It stays valid as long as its
// engine and is safe for concurrent use.
type Resource struct {
	engine  *Engine
	name    string
	present atomic.Pointer[resource]
}

// Name returns the name of the resource.
func (r *Resource) Name() string { return r.name }

// Entry is [Engine.Entry] for this resource.
func (r *Resource) Entry(ctx context.Context, opts ...Option) (Guard, error) {
	return r.engine.enter(ctx, r.current(), r.name, opts)
}

// current looks the name up again if the resource was evicted meanwhile, or is one of
// the overflow.
func (r *Resource) current() *resource {
	present := r.present.Load()
	if present.evicted.Load() || present.resourceStats == r.engine.resources.overflowResource.resourceStats {
		present = r.engine.resources.getOrAdd(r.name)
		r.present.Store(present)
	}
	return present
}
