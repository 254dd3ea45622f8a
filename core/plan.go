package core

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
)

// plan is what the rules in force demand of the calls of one resource, in the
// order in which they are asked: those that make a call wait come before those
// that count the moment of passing. It never changes.
//
// A set of rules is swapped for many resources at once: each changed resource
// gets a plan for the coming generation, before which stands the present one,
// and then the engine's generation is moved on. A call reads the generation
// first and acts by the plan that held in it.
type plan struct {
	since  uint64 // the generation in which the plan came into force
	before *plan  // the one that it replaces; nil for the first, and once forgotten

	queues  []queueRule
	windows []windowRule
}

// windowRule is a rule of control "reject" in a plan.
type windowRule struct {
	terms    *flow.Terms
	window   *flow.Window
	refusals *refusals
}

// queueRule is a rule of control "throttle" in a plan.
type queueRule struct {
	terms    *flow.Terms
	queue    *flow.Queue
	refusals *refusals
}

// planNow returns the plan of the generation in force, nil when the engine is
// closed.
func (r *resource) planNow() *plan {
	for {
		generation := r.engine.generation.Load()
		if generation == closedGeneration {
			return nil
		}
		for p := r.plan.Load(); p != nil; p = p.before {
			if p.since <= generation {
				return p
			}
		}
		// The plan of that generation is forgotten: the engine has moved on.
	}
}

// takeWindows takes n tokens of every window at now. If one of them has none to
// give, that rule is returned and nothing is taken.
func (p *plan) takeWindows(now clock.Instant, n int32) (*windowRule, flow.Decision) {
	for i := range p.windows {
		rule := &p.windows[i]
		if decision := rule.window.Take(rule.terms, now, n); decision != flow.Passed {
			p.giveBack(i, now, n)
			return rule, decision
		}
	}
	return nil, flow.Passed
}

// giveBack returns n tokens to the first count windows that gave them at now.
func (p *plan) giveBack(count int, now clock.Instant, n int32) {
	for i := range p.windows[:count] {
		rule := &p.windows[i]
		rule.window.GiveBack(rule.terms, now, n)
	}
}

func (r *windowRule) refuse(n int32) *BlockError {
	return r.refusals.refuse(r.window.RetryAfter(n))
}

func (r *queueRule) refuse(now clock.Instant, n int32, patience time.Duration) *BlockError {
	return r.refusals.refuse(r.queue.RetryAfter(now, n, patience))
}

func (p *plan) isEmpty() bool { return len(p.queues) == 0 && len(p.windows) == 0 }

func (p *plan) add(r *flowRule) {
	if r.queue != nil {
		p.queues = append(p.queues, queueRule{r.terms, r.queue, r.refusals})
	} else {
		p.windows = append(p.windows, windowRule{r.terms, r.window, r.refusals})
	}
}
