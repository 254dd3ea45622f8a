package registry

import (
	"hash/maphash"
	"strings"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// warnOfOverflow tells, once, that a name finds no space.
func (g *Registry[E]) warnOfOverflow(name string) {
	if !g.overflow.warned.Load() && !g.mustOverflow(name) && g.overflow.warned.CompareAndSwap(false, true) {
		g.config.Full(name)
	}
}

// ForgetOverflowNames drops the names that are remembered: they would keep older
// pattern sets alive.
func (g *Registry[E]) ForgetOverflowNames() {
	for i := range g.overflow.names {
		g.overflow.names[i].Store(nil)
	}
}

// overflowFor returns a resource for a name in the overflow: the same for all
// names if there are no patterns, else one with the name and the rules that match it.
func (g *Registry[E]) overflowFor(name string) *Resource[E] {
	patterns := g.overflow.patterns.Load()
	if len(patterns.Rules) == 0 {
		return g.overflow.unmatched
	}
	if len(name) > rule.MaxNameLength { // not worth remembering
		return g.newOverflowResource(strings.Clone(name), patterns) // its refusals have the name
	}
	slot := &g.overflow.names[maphash.String(g.overflow.seed, name)%overflowNames]
	if r := slot.Load(); r != nil && r.Name == name && r.patterns == patterns {
		return r
	}
	r := g.newOverflowResource(strings.Clone(name), patterns)
	for i := range r.Plan.Load().Rules {
		of := r.Plan.Load().Rules[i].State.Rule
		of.Matched.Store(true)
		of.Called.Store(true)
	}
	slot.Store(r)
	return r
}

// newOverflowResource returns a resource with the statistics of the overflow, under the
// rules that match the name.
func (g *Registry[E]) newOverflowResource(name string, patterns *inforce.Patterns) *Resource[E] {
	r := g.newResource(name, g.Overflow.Stats)
	r.patterns = patterns
	r.Evicted.Store(true) // a call that passes looks whether the name has a resource by now
	p := g.config.Plans.Planner(name, patterns.Switches)
	patterns.Matching(name, func(of *inforce.PatternRule) {
		state := &inforce.State{Rule: of.Rule, Refusals: call.NewRefusals(name, &of.Key, of.Version, of.Tally)}
		p.Add(of.Version, state, of.Limiter, &of.Target)
	})
	r.Plan.Store(p.Plan(0))
	return r
}

// newResourceFor returns a resource for a new name, under the rules whose patterns
// match it.
func (g *Registry[E]) newResourceFor(name string, patterns *inforce.Patterns, now clock.Instant) *Resource[E] {
	r := g.newResource(strings.Clone(name), new(Stats)) // the name may be a part of something larger
	p := g.config.Plans.Planner(r.Name, patterns.Switches)
	patterns.Matching(name, func(of *inforce.PatternRule) {
		state := g.config.Plans.NewState(of.Rule, of.Version, r.Name, &r.Node, patterns.Version, now)
		limiter := of.Limiter
		if state.Own != nil {
			limiter = state.Own.Limiter
		}
		p.Add(of.Version, state, limiter, &of.Target)
	})
	if len(p.States) > 0 {
		r.States = p.States
		r.Plan.Store(p.Plan(0))
	}
	return r
}

// inherit has a new resource begin with what the overflow has counted, for its name may
// have been one of those there.
func (g *Registry[E]) inherit(r *Resource[E], patterns *inforce.Patterns, now clock.Instant) {
	i := 0
	for _, state := range r.States { // in the order of the set
		for patterns.Rules[i].Rule != state.Rule {
			i++
		}
		if state.Own == nil {
			continue
		}
		if own, ok := state.Own.Limiter.Limiter.(optional.Inheritor); ok {
			own.Inherit(patterns.Rules[i].Limiter.Limiter, now)
		}
	}
}
