package core

import (
	"slices"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
)

// plan is what the rules in force demand of the calls of one resource. It never
// changes, but that it forgets the one before.
//
// A set of rules is swapped for many resources at once: each changed resource
// gets a plan for the coming generation, before which stands the present one,
// and then the engine's generation is moved on. A call reads the generation
// first and acts by the plan that held in it.
type plan struct {
	since  uint64               // the generation in which the plan came into force
	before atomic.Pointer[plan] // the one that it replaces; nil for the first, and once forgotten

	rules   []planned         // all of them, in the order in which they are asked
	others  steps             // of calls whose origin no rule names
	origins map[string]*steps // of those whose origin a rule names; nil when none does
}

// planned is a rule in a plan, and what it holds of the resource.
type planned struct {
	terms *flow.Terms
	hold  *hold
}

// steps are the rules that one call is held against: those that make it wait
// come before those that count the moment of passing.
type steps struct {
	queues  []queueRule
	asks    []flow.Ask   // the queues once more
	windows []windowRule // those for fewer calls before those for more
	after   *aftermath   // of calls that pass; nil when there is none

	anyHolds bool          // one of the windows does
	fullLast *atomic.Int32 // the place, from 1, of the window that refused last; nil if there are not several
}

// windowRule is a rule with a window in a plan.
type windowRule struct {
	terms    *flow.Terms
	window   *flow.Window
	refusals *refusals
	related  bool // the window counts the passes of another resource

	// The window is also one of calls that other rules apply to, and so may be
	// asked between a take and a return of tokens by a call of another resource.
	wide  bool
	holds bool // it is, and is not the last that a call asks

	// Tokens that calls of the resource will take which wait in a queue; nil if the
	// window is wide, or takes none.
	promised *atomic.Int64
}

// queueRule is a rule with a queue in a plan.
type queueRule struct {
	terms    *flow.Terms
	queue    *flow.Queue
	refusals *refusals
}

// planNow returns the plan of the generation in force, nil when the engine is
// closed. Mostly that is the first one.
func (r *resource) planNow() *plan {
	if generation, p := r.engine.generation.Load(), r.plan.Load(); p.since <= generation && generation != closedGeneration {
		return p
	}
	return r.planBefore()
}

func (r *resource) planBefore() *plan {
	for {
		generation := r.engine.generation.Load()
		if generation == closedGeneration {
			return nil
		}
		for p := r.plan.Load(); p != nil; p = p.before.Load() {
			if p.since <= generation {
				return p
			}
		}
		// The plan of that generation is forgotten: the engine has moved on.
	}
}

// stepsOf returns the rules that a call with these options is held against.
func (p *plan) stepsOf(opts []Option) *steps {
	if p.origins == nil {
		return &p.others
	}
	return p.stepsOfOrigin(originOf(opts))
}

func (p *plan) stepsOfOrigin(origin string) *steps {
	if s := p.origins[origin]; s != nil {
		return s
	}
	return &p.others
}

func (s *steps) hasQueue(queue *flow.Queue) bool {
	return slices.ContainsFunc(s.queues, func(r queueRule) bool { return r.queue == queue })
}

func (r *windowRule) take(now clock.Instant, n int32) flow.Decision {
	if r.related {
		return r.window.Check(r.terms, now, n)
	}
	return r.window.Take(r.terms, now, n)
}

// giveBack returns n tokens to the first count windows that gave them at now.
func (s *steps) giveBack(count int, now clock.Instant, n int32) {
	for i := range s.windows[:count] {
		if rule := &s.windows[i]; !rule.related {
			rule.window.GiveBack(rule.terms, now, n)
		}
	}
}

// giveBackAll returns n tokens to every window.
func (s *steps) giveBackAll(now clock.Instant, n int32) { s.giveBack(len(s.windows), now, n) }
