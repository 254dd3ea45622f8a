package core

import (
	"sync/atomic"

	"github.com/penstock-go/penstock/rule"
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
	others  chain             // for calls whose origin no rule names
	origins map[string]*chain // for those whose origin a rule names; nil when none does
}

// planned is a version of a rule in a plan, with its limiter and the state that it keeps
// for the resource.
type planned struct {
	rule    rule.Rule
	state   *ruleState
	limiter versionedLimiter
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

// chainFor returns the rules that a call with these options has to pass.
func (p *plan) chainFor(opts []Option) *chain {
	if p.origins == nil {
		return &p.others
	}
	return p.chainForOrigin(originOf(opts))
}

func (p *plan) chainForOrigin(origin string) *chain {
	if c := p.origins[origin]; c != nil {
		return c
	}
	return &p.others
}

// isFor says whether a rule with that target is for calls of an origin that a rule
// names, or for [rule.OtherOrigins].
func isFor(t rule.Target, origin string) bool { return t.Origin == "" || t.Origin == origin }
