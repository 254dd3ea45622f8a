package core

import (
	"hash/fnv"
	"io"
	"slices"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/core/internal/load"
	"github.com/penstock-go/penstock/core/internal/names"
	"github.com/penstock-go/penstock/core/internal/recorder"
	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/internal/splitmix"
	"github.com/penstock-go/penstock/rule"
)

// resource is one name that was called or that a rule names.
type resource struct {
	names.Entry // what is gone is counted among the forgotten
	*resourceStats
	env  *callEnv
	plan atomic.Pointer[inforce.Plan] // never nil

	patterns *inforce.Patterns // of a name in the overflow: where its rules come from
	recorded recorder.Place
	load     atomic.Pointer[load.Meter] // nil until a guard is asked for the load

	// registry.swapMu guards what follows, once others can find the resource.
	attached   *attachments     // nil while no rule in force names it
	states     []*inforce.State // of the rules in force, by kind and name
	affectedIn uint64           // the generation in which its plan last changed
}

// resourceStats is what is counted of the calls of a resource. It is 448 bytes, so that the
// runtime aligns it to a cache line, as its node needs.
type resourceStats struct {
	node        leap.Node
	loggedUntil atomic.Int64 // the end of the second in which a refusal was last logged; 0 before the first

	numbers atomic.Uint64 // how many calls were given a number, from that of the resource on: see drawNumber
}

// attachments are the rules in force that name a resource. Such a resource is never
// forgotten.
type attachments struct {
	guards []*inforce.Rule  // rules on the resource
	counts []*inforce.Rule  // rules on others that count its passes, in no order
	first  [1]*inforce.Rule // has the guards of most resources, which are one
}

func newAttachments() *attachments {
	a := new(attachments)
	a.guards = a.first[:0]
	return a
}

// planNow returns the plan of the generation in force, nil when the engine is closed. It is
// the latest one, except during a swap.
func (r *resource) planNow() *inforce.Plan {
	if generation, p := r.env.generation.Load(), r.plan.Load(); p.IsInForce(generation) {
		return p
	}
	return r.planBefore()
}

// planBefore looks for that plan among those that the latest one replaces.
func (r *resource) planBefore() *inforce.Plan {
	for {
		generation := r.env.generation.Load()
		if generation == inforce.Closed {
			return nil
		}
		for p := r.plan.Load(); p != nil; p = p.Before.Load() {
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
	r.node.Pass(now, tokens)
	if r.Evicted.Load() && !r.env.names.stillOverflows(r) {
		r.node.TakeBack(now, tokens)
		return false
	}
	return true
}

// lookUpAgain returns the resource of the name: the same one, unless it was evicted or
// belongs to the overflow. Then the name may have another one by now.
func (r *resource) lookUpAgain(name string) *resource {
	if r.Evicted.Load() || r.resourceStats == r.env.overflow {
		return r.env.names.getOrAdd(name)
	}
	return r
}

// drawNumber draws a number for a call, see [rule.Call.Number]. It is that of a place in the
// sequence of the SplitMix64 generator, so that simulations can be repeated.
func (s *resourceStats) drawNumber() uint32 {
	return max(1, uint32(splitmix.Mix(s.numbers.Add(1)*splitmix.Increment)>>37))
}

// firstNumber returns where the sequence of a resource begins, so that those of resources
// that share a limiter differ.
func firstNumber(name string) uint64 {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, name) // never fails
	return hash.Sum64()
}

// isIdle says whether nothing is lost when the resource is forgotten and its name comes
// again. The caller holds registry.swapMu.
func (r *resource) isIdle(now clock.Instant) bool {
	return r.node.Idle(now) && !slices.ContainsFunc(r.states, func(s *inforce.State) bool { return s.Own != nil && !s.Own.Limiter.Idle(now) })
}

// noteMatched takes note of the rules that calls of the resource have matched.
func (r *resource) noteMatched() {
	p := r.plan.Load()
	if len(p.Rules) == 0 {
		return
	}
	calls := r.node.Calls()
	if calls == 0 {
		return
	}
	for i := range p.Rules {
		state := p.Rules[i].State
		state.Rule.Called.Store(true)
		if calls > state.Before {
			state.Rule.Matched.Store(true)
		}
	}
}

// loadMeter returns the meter of the resource, which it makes at first use.
func (r *resource) loadMeter() *load.Meter {
	if m := r.load.Load(); m != nil {
		return m
	}
	m := load.NewMeter(r, r.env.clock.Now())
	if !r.load.CompareAndSwap(nil, m) {
		return r.load.Load()
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
		reporter, ok := p.Rules[i].Limiter.(rule.LoadReporter)
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
			if _, ok := p.Rules[i].Limiter.(rule.LoadReporter); ok {
				refused += p.Rules[i].State.Refusals.Tally.Refused.Total()
			}
		}
	}
	return r.node.Sums().Passed, refused
}
