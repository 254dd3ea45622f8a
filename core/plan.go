package core

import (
	"sync/atomic"

	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/rule"
)

// plan is the rules in force for one resource, as chains. It never changes, except that
// before is cleared.
//
// A set of rules is swapped for many resources at once. Each changed resource gets a plan
// for the next generation, which is linked to the present plan. Then the generation of the
// engine is incremented. A call reads the generation first and takes the plan that is in
// force in it.
type plan struct {
	since  uint64               // the generation in which the plan came into force
	before atomic.Pointer[plan] // the one that it replaces; nil for the first, and after the swap

	prefetching *call.KeyedStep // that of the first step of others with a prefetcher; nil if there is none

	rules   []planned              // all of them, in the order in which they are asked
	others  call.Chain             // for calls whose origin no rule names
	origins map[string]*call.Chain // for those whose origin a rule names; nil when none does
}

// planned is a version of a rule in a plan, with its limiter and the state that it keeps
// for the resource.
type planned struct {
	rule    rule.Rule
	state   *ruleState
	limiter rule.Limiter
	off     bool // it is switched off here
}

// refuses says whether the rule can refuse calls for now: it is no shadow, is not switched off, and
// does not demote calls instead.
func (p *planned) refuses() bool { return !p.off && !p.rule.Target().Shadow && !p.rule.Demotes() }

// isInForce says whether the latest plan of a resource is in force in a generation.
func (p *plan) isInForce(generation uint64) bool {
	return p.since <= generation && generation != closedGeneration
}

// chainFor returns the rules that a call with these options has to pass.
func (p *plan) chainFor(opts []Option) *call.Chain {
	if p.origins == nil {
		return &p.others
	}
	return p.chainForOrigin(opts)
}

func (p *plan) chainForOrigin(opts []Option) *call.Chain {
	if c := p.origins[call.OriginOf(opts)]; c != nil {
		if !c.Named.Entered.Load() {
			c.NoteOrigin()
		}
		return c
	}
	return &p.others
}

// isFor says whether a rule with that target is for calls of an origin that a rule
// names, or for [rule.OtherOrigins].
func isFor(t rule.Target, origin string) bool { return t.Origin == "" || t.Origin == origin }
