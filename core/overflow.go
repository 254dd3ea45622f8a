package core

import (
	"hash/maphash"
	"strings"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/match"
	"github.com/penstock-go/penstock/rule"
)

// overflowNames is how many of the names that found no room are remembered, so
// that patterns need not be held against each of their calls.
const overflowNames = 1024

// overflow is where the names go that found no room in the registry. They share
// one account, and under each rule with a pattern one ceiling.
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

// patternRule is a rule with a pattern as it was when it was put in the book.
type patternRule struct {
	*activeRule
	version rule.Rule
	target  rule.Target
	limiter versionedLimiter // of the names beyond the bound
	tally   *tally           // of what the rule refuses of them
}

// newPatternSet returns the book of the rules with patterns, which are those of the
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

// forgetOverflowNames lets go of the names that are remembered: they would keep older
// books alive.
func (g *registry) forgetOverflowNames() {
	for i := range g.overflow.names {
		g.overflow.names[i].Store(nil)
	}
}

// overflowResourceFor returns a resource for a name that found no room: the same for all
// if no rule can match, else one that bears the name and the rules that match it.
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

// newOverflowResource returns a resource with the account of the overflow, under the rules
// that match the name.
func (g *registry) newOverflowResource(name string, patterns *patternSet) *resource {
	r := g.newResource(name, g.overflowResource.resourceStats)
	r.patterns = patterns
	r.evicted.Store(true) // whoever passes sees to it that the name has still found no room
	p := planner{overflow: true}
	patterns.matching(name, func(of *patternRule) {
		state := &ruleState{rule: of.activeRule, version: of.version, limiter: of.limiter}
		state.refusals.init(name, of.version, of.tally)
		p.add(planned{of.version, of.target, state, of.limiter})
	})
	r.plan.Store(p.plan(0))
	return r
}

// newResourceFor returns a resource for a new name, under the rules of a book whose
// patterns match it.
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

// inherit has a newcomer that was made by a book begin with what the overflow has
// counted, for its name may have been one of those there.
func (g *registry) inherit(r *resource, patterns *patternSet, now clock.Instant) {
	i := 0
	for _, state := range r.states { // in the order of the book
		for patterns.rules[i].activeRule != state.rule {
			i++
		}
		if own, ok := state.limiter.Limiter.(rule.Inheritor); ok && state.isOwn() {
			own.Inherit(patterns.rules[i].limiter.Limiter, now)
		}
	}
}

// stillOverflows says whether the resource shares the account of the overflow and its name
// has still found no room. It is asked when a call was counted there: a name that comes
// to have a resource of its own begins with what was counted before.
func (r *resource) stillOverflows() bool {
	g := &r.engine.resources
	if r.resourceStats != g.overflowResource.resourceStats {
		return false
	}
	settled := !g.adding.Load()
	switch own := g.table.get(r.name); {
	case settled && own == nil:
		return true
	case settled && !own.evicted.Load():
		return false
	}
	g.mu.Lock() // until the name is added, or forgotten
	defer g.mu.Unlock()
	return g.present(r.name) == nil
}

// lookUpAgain returns the resource of the name, the same one unless it was forgotten or
// had found no room: then it may have rules of its own by now, or others.
func (r *resource) lookUpAgain(name string) *resource {
	if r.evicted.Load() || r.resourceStats == r.engine.resources.overflowResource.resourceStats {
		return r.engine.resources.getOrAdd(name)
	}
	return r
}
