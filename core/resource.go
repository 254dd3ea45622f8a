package core

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/core/internal/load"
	"github.com/penstock-go/penstock/core/internal/registry"
	"github.com/penstock-go/penstock/internal/optional"
)

// resource is one name that was called or that a rule names, as calls use it.
type resource registry.Resource[callEnv]

// of returns the resource as the registry knows it.
func (r *resource) of() *registry.Resource[callEnv] { return (*registry.Resource[callEnv])(r) }

// get returns the resource of a name. If there are too many names, it is one that shares the statistics of the overflow.
func (e *callEnv) get(name string) *resource { return (*resource)(e.resources.Get(name)) }

// peek returns what a call of the name would find, without adding a new name.
func (e *callEnv) peek(name string) *resource { return (*resource)(e.resources.Peek(name)) }

// planNow returns the plan of the generation in force, nil when the engine is closed. It is
// the latest one, except during a swap.
func (r *resource) planNow() *inforce.Plan {
	if generation, p := r.Env.generation.Load(), r.Plan.Load(); p.IsInForce(generation) {
		return p
	}
	return r.planBefore()
}

// planBefore looks for that plan among those that the latest one replaces.
func (r *resource) planBefore() *inforce.Plan {
	for {
		generation := r.Env.generation.Load()
		if generation == inforce.Closed {
			return nil
		}
		for p := r.Plan.Load(); p != nil; p = p.Before.Load() {
			if p.Since <= generation {
				return p
			}
		}
		// That plan was cleared meanwhile: the generation has changed.
	}
}

// pass counts a call that passes at now. It returns false, and counts nothing, when the
// resource has just been evicted, or when a name beyond the bound has just got a resource
// of its own.
func (r *resource) pass(now clock.Instant, tokens int32) bool {
	r.Node.Pass(now, tokens)
	return !r.Evicted.Load() || r.staysPassed(now, tokens)
}

// staysPassed says whether a call stays counted that has passed a resource which has no name of its own.
func (r *resource) staysPassed(now clock.Instant, tokens int32) bool {
	if r.Env.resources.StillOverflows(r.of()) {
		return true
	}
	r.Node.TakeBack(now, tokens)
	return false
}

// lookUpAgain returns the resource of the name: the same one, unless it was evicted or
// belongs to the overflow. Then the name may have another one by now.
func (r *resource) lookUpAgain(name string) *resource {
	if r.Evicted.Load() || r.Stats == r.Env.resources.Overflow.Stats {
		return (*resource)(r.Env.resources.GetOrAdd(name))
	}
	return r
}

// loadMeter returns the meter of the resource, which it makes at first use.
func (r *resource) loadMeter() *load.Meter {
	if m := r.Load.Load(); m != nil {
		return m
	}
	m := load.NewMeter(r, r.Env.clock.Now())
	if !r.Load.CompareAndSwap(nil, m) {
		return r.Load.Load()
	}
	return m
}

// Places implements [load.Source]: the highest load that a rule tells which can refuse calls.
func (r *resource) Places(now clock.Instant) (taken float64, waiting bool) {
	p := r.planNow()
	if p == nil {
		return 0, false
	}
	for i := range p.Rules {
		reporter, ok := p.Rules[i].Limiter.(optional.LoadReporter)
		if !ok || !p.Rules[i].Refuses() {
			continue
		}
		present := reporter.Load(now)
		if present.Utilization > taken { // not if it is no number
			taken = present.Utilization
		}
		waiting = waiting || present.Waiting
	}
	return taken, waiting
}

// Counted implements [load.Source], of the rules that report loads.
func (r *resource) Counted() (passed, refused uint64) {
	if p := r.planNow(); p != nil {
		for i := range p.Rules {
			if _, ok := p.Rules[i].Limiter.(optional.LoadReporter); ok {
				refused += p.Rules[i].State.Refusals.Tally.Refused.Total()
			}
		}
	}
	return r.Node.Sums().Passed, refused
}
