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
	patterns  atomic.Pointer[patternBook]
	names     [overflowNames]atomic.Pointer[resource] // by the hash of the name
	unmatched *resource                               // stands for all names while there are no patterns
}

// patternBook is the rules with patterns that are in force, by kind and name. It never
// changes.
type patternBook struct {
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

// newPatternBook returns the book of the rules with patterns, which are those of the
// overflow.
func (g *registry) newPatternBook(index *match.Index, version uint64) *patternBook {
	book := &patternBook{version: version, index: index, rules: make([]patternRule, 0, len(g.overflow.states))}
	for _, state := range g.overflow.states {
		a := state.rule
		book.rules = append(book.rules, patternRule{a, a.rule, a.target, state.limiter, state.refusals.tally})
	}
	return book
}

// matching calls each with the rules that guard the resource of a name.
func (b *patternBook) matching(name string, each func(*patternRule)) {
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

// forgetOverflowing lets go of the names that are remembered: they would keep older
// books alive.
func (g *registry) forgetOverflowing() {
	for i := range g.spill.names {
		g.spill.names[i].Store(nil)
	}
}

// overflowing returns a resource for a name that found no room: the same for all
// if no rule can match, else one that bears the name and the rules that match it.
func (g *registry) overflowing(name string) *resource {
	book := g.spill.patterns.Load()
	if len(book.rules) == 0 {
		return g.spill.unmatched
	}
	if len(name) > rule.MaxNameLength { // not worth remembering
		return g.passing(name, book)
	}
	slot := &g.spill.names[maphash.String(g.spill.seed, name)%overflowNames]
	if r := slot.Load(); r != nil && r.name == name && r.patterns == book {
		return r
	}
	r := g.passing(strings.Clone(name), book)
	for i := range r.plan.Load().rules {
		r.plan.Load().rules[i].state.rule.matched.Store(true)
	}
	slot.Store(r)
	return r
}

// passing returns a resource with the account of the overflow, under the rules
// that match the name.
func (g *registry) passing(name string, book *patternBook) *resource {
	r := g.newResource(name, g.overflow.account)
	r.patterns = book
	r.evicted.Store(true) // whoever passes sees to it that the name has still found no room
	p := planner{overflow: true}
	book.matching(name, func(of *patternRule) {
		state := &ruleState{rule: of.activeRule, version: of.version, limiter: of.limiter}
		state.refusals.init(name, of.version, of.tally)
		p.add(planned{of.version, of.target, state, of.limiter})
	})
	r.plan.Store(p.plan(0))
	return r
}

// newcomer returns a resource for a new name, under the rules of a book whose
// patterns match it.
func (g *registry) newcomer(name string, book *patternBook) *resource {
	r := g.newResource(strings.Clone(name), new(account)) // the name may be a part of something larger
	var p planner
	env := limiterEnv{g.engine, book.version, g.engine.clock.Now()}
	book.matching(name, func(of *patternRule) {
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
func (g *registry) inherit(r *resource, book *patternBook, now clock.Instant) {
	i := 0
	for _, state := range r.states { // in the order of the book
		for book.rules[i].activeRule != state.rule {
			i++
		}
		if own, ok := state.limiter.Limiter.(rule.Inheritor); ok && state.isOwn() {
			own.Inherit(book.rules[i].limiter.Limiter, now)
		}
	}
}

// isOutside says whether the resource shares the account of the overflow and its name
// has still found no room. It is asked when a call was counted there: a name that comes
// to have a resource of its own begins with what was counted before.
func (r *resource) isOutside() bool {
	g := &r.engine.resources
	if r.account != g.overflow.account {
		return false
	}
	settled := !g.admitting.Load()
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

// again returns the resource of the name, the same one unless it was forgotten or
// had found no room: then it may have rules of its own by now, or others.
func (r *resource) again(name string) *resource {
	if r.evicted.Load() || r.account == r.engine.resources.overflow.account {
		return r.engine.resources.find(name)
	}
	return r
}
