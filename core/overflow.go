package core

import (
	"hash/maphash"
	"strings"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/match"
	"github.com/penstock-go/penstock/rule"
)

// overflowNames is how many of the names in the overflow are remembered with their
// rules, so that a call of one need not be matched against the patterns again.
const overflowNames = 1024

// overflow stands for the names for which the registry has no space. They share one set
// of statistics and, under each rule with a pattern, one limiter.
type overflow struct {
	seed      maphash.Seed
	patterns  atomic.Pointer[patternSet]
	names     [overflowNames]atomic.Pointer[resource] // by the hash of the name
	unmatched *resource                               // stands for all names while there are no patterns
}

// patternSet is the rules with patterns that are in force, by kind and name. It never
// changes.
type patternSet struct {
	version uint64       // the generation in which it came into force
	index   *match.Index // of the patterns
	rules   []patternRule
}

// patternRule is a rule with a pattern as it was when the set was made.
type patternRule struct {
	*activeRule
	version rule.Rule
	target  rule.Target
	limiter versionedLimiter // of the names beyond the bound
	tally   *tally           // of what the rule refuses of them
}

// newPatternSet returns the set of the rules with patterns, which are those of the
// overflow.
func (g *registry) newPatternSet(index *match.Index, version uint64) *patternSet {
	patterns := &patternSet{version: version, index: index, rules: make([]patternRule, 0, len(g.overflowResource.states))}
	for _, state := range g.overflowResource.states {
		a := state.rule
		patterns.rules = append(patterns.rules, patternRule{a, a.rule, a.target, state.limiter, state.refusals.tally})
	}
	return patterns
}

// matching calls each with the rules that guard the resource of a name.
func (b *patternSet) matching(name string, each func(*patternRule)) {
	if len(b.rules) == 0 {
		return
	}
	var few [32]int
	for _, place := range b.index.Append(few[:0], name) {
		if r := &b.rules[place]; name != r.related {
			each(r)
		}
	}
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
	if len(patterns.rules) == 0 {
		return g.overflow.unmatched
	}
	if len(name) > rule.MaxNameLength { // not worth remembering
		return g.newOverflowResource(name, patterns)
	}
	slot := &g.overflow.names[maphash.String(g.overflow.seed, name)%overflowNames]
	if r := slot.Load(); r != nil && r.name == name && r.patterns == patterns {
		return r
	}
	r := g.newOverflowResource(strings.Clone(name), patterns)
	for i := range r.plan.Load().rules {
		r.plan.Load().rules[i].state.rule.matched.Store(true)
	}
	slot.Store(r)
	return r
}

// newOverflowResource returns a resource with the statistics of the overflow, under the
// rules that match the name.
func (g *registry) newOverflowResource(name string, patterns *patternSet) *resource {
	r := g.newResource(name, g.overflowResource.resourceStats)
	r.patterns = patterns
	r.evicted.Store(true) // a call that passes looks whether the name has a resource by now
	p := planner{overflow: true}
	patterns.matching(name, func(of *patternRule) {
		state := &ruleState{rule: of.activeRule, version: of.version, limiter: of.limiter}
		state.refusals.init(name, of.version, of.tally)
		p.add(planned{of.version, of.target, state, of.limiter})
	})
	r.plan.Store(p.plan(0))
	return r
}

// newResourceFor returns a resource for a new name, under the rules whose patterns
// match it.
func (g *registry) newResourceFor(name string, patterns *patternSet) *resource {
	r := g.newResource(strings.Clone(name), new(resourceStats)) // the name may be a part of something larger
	var p planner
	env := limiterEnv{g.engine, patterns.version, g.engine.clock.Now()}
	patterns.matching(name, func(of *patternRule) {
		state := env.newState(of.activeRule, of.version, of.limiter, r)
		p.add(planned{of.version, of.target, state, state.limiter})
	})
	if len(p.states) > 0 {
		r.states = p.states
		r.plan.Store(p.plan(0))
	}
	return r
}

// inherit has a new resource begin with what the overflow has counted, for its name may
// have been one of those there.
func (g *registry) inherit(r *resource, patterns *patternSet, now clock.Instant) {
	i := 0
	for _, state := range r.states { // in the order of the set
		for patterns.rules[i].activeRule != state.rule {
			i++
		}
		if own, ok := state.limiter.Limiter.(rule.Inheritor); ok && state.isOwn() {
			own.Inherit(patterns.rules[i].limiter.Limiter, now)
		}
	}
}

// stillOverflows says whether the resource is one of the overflow and its name still
// has no other. It is asked after a call was counted there: a name that gets a resource
// of its own begins with what was counted before.
func (r *resource) stillOverflows() bool {
	g := &r.engine.resources
	if r.resourceStats != g.overflowResource.resourceStats {
		return false
	}
	isStable := !g.adding.Load() // no name is leaving the overflow just now
	switch own := g.table.get(r.name); {
	case isStable && own == nil:
		return true
	case isStable && !own.evicted.Load():
		return false
	}
	g.mu.Lock() // until the name is added, or forgotten
	defer g.mu.Unlock()
	return g.present(r.name) == nil
}

// lookUpAgain returns the resource of the name: the same one, unless it was evicted or
// belongs to the overflow. Then the name may have another one by now.
func (r *resource) lookUpAgain(name string) *resource {
	if r.evicted.Load() || r.resourceStats == r.engine.resources.overflowResource.resourceStats {
		return r.engine.resources.getOrAdd(name)
	}
	return r
}
