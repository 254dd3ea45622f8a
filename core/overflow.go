package core

import (
	"hash/maphash"
	"log/slog"
	"strings"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/core/internal/lines"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// warnOfOverflow logs, once, that a name finds no space. Most often that means that
// clients choose names.
func (g *registry) warnOfOverflow(name string) {
	if g.overflow.warned.Load() || g.mustOverflow(name) || !g.overflow.warned.CompareAndSwap(false, true) {
		return
	}
	g.env.events.add(Event{At: g.env.clock.Now(), Type: EventOverflow, Resource: name})
	attributes := []any{slog.Int("maxResources", g.max), slog.String("resource", lines.Cut(name))}
	var byValue []string
	for _, kind := range g.kinds {
		if kind.Phase() == rule.PhaseValue {
			byValue = append(byValue, string(kind.Kind()))
		}
	}
	if len(byValue) > 0 {
		attributes = append(attributes, slog.Any("kindsByValue", byValue))
	}
	g.env.log.Warn("penstock: there are more resource names than MaxResources: those beyond share one set of statistics"+
		" and, under each rule with a pattern, one limit; if clients choose names, such as users or addresses, give calls one name"+
		" and say who calls by an attribute, which rules can limit by value; if not, raise MaxResources", attributes...)
}

// forgetOverflowNames drops the names that are remembered: they would keep older
// pattern sets alive.
func (g *registry) forgetOverflowNames() {
	for i := range g.overflow.names {
		g.overflow.names[i].Store(nil)
	}
}

// overflowResourceFor returns a resource for a name in the overflow: the same for all
// names if there are no patterns, else one with the name and the rules that match it.
func (g *registry) overflowResourceFor(name string) *resource {
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
	for i := range r.plan.Load().Rules {
		of := r.plan.Load().Rules[i].State.Rule
		of.Matched.Store(true)
		of.Called.Store(true)
	}
	slot.Store(r)
	return r
}

// newOverflowResource returns a resource with the statistics of the overflow, under the
// rules that match the name.
func (g *registry) newOverflowResource(name string, patterns *inforce.Patterns) *resource {
	r := g.newResource(name, g.overflowResource.resourceStats)
	r.patterns = patterns
	r.Evicted.Store(true) // a call that passes looks whether the name has a resource by now
	p := g.limiters.planner(name, patterns.Switches)
	patterns.Matching(name, func(of *inforce.PatternRule) {
		state := &inforce.State{Rule: of.Rule, Refusals: call.NewRefusals(name, &of.Key, of.Version, of.Tally)}
		p.Add(of.Version, state, of.Limiter, &of.Target)
	})
	r.plan.Store(p.Plan(0))
	return r
}

// newResourceFor returns a resource for a new name, under the rules whose patterns
// match it.
func (g *registry) newResourceFor(name string, patterns *inforce.Patterns, now clock.Instant) *resource {
	r := g.newResource(strings.Clone(name), new(resourceStats)) // the name may be a part of something larger
	p := g.limiters.planner(r.Name, patterns.Switches)
	env := limiterEnv{g.limiters, patterns.Version, now}
	patterns.Matching(name, func(of *inforce.PatternRule) {
		state := env.newState(of.Rule, of.Version, r)
		limiter := of.Limiter
		if state.Own != nil {
			limiter = state.Own.Limiter
		}
		p.Add(of.Version, state, limiter, &of.Target)
	})
	if len(p.States) > 0 {
		r.states = p.States
		r.plan.Store(p.Plan(0))
	}
	return r
}

// inherit has a new resource begin with what the overflow has counted, for its name may
// have been one of those there.
func (g *registry) inherit(r *resource, patterns *inforce.Patterns, now clock.Instant) {
	i := 0
	for _, state := range r.states { // in the order of the set
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

// newState returns the state of a version of a rule for a resource that the rule did
// not apply to before.
func (l limiterEnv) newState(a *inforce.Rule, version rule.Rule, r *resource) *inforce.State {
	s := inforce.NewState(a, r.node.Calls())
	if own := s.Own; own != nil {
		own.Version, own.Transitions = version, inforce.NewTransitions(version)
		own.Limiter = l.newLimiter(a, version, r.Name, own.Transitions)
	}
	s.Refusals = call.NewTalliedRefusals(&r.node, r.Name, &a.Key, version)
	return s
}
