package core

import (
	"hash/maphash"
	"strings"
	"sync/atomic"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
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

// patternBook is the rules with patterns that are in force, in their order. It
// never changes.
type patternBook struct {
	rules []patternRule
}

// patternRule is a rule with a pattern as it was when it was put in the book, and
// what it holds of the overflow.
type patternRule struct {
	*flowRule
	terms *flow.Terms
	hold  *hold
}

// usePatterns makes the rules with patterns, which are those of the overflow,
// apply to names that come from now on. The caller holds g.mu.
func (g *registry) usePatterns() {
	book := &patternBook{rules: make([]patternRule, 0, len(g.overflow.holds))}
	for _, h := range g.overflow.holds {
		book.rules = append(book.rules, patternRule{h.rule, h.rule.terms, h})
	}
	g.spill.patterns.Store(book)
	for i := range g.spill.names { // what is remembered would keep older books alive
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
	if len(name) > rules.MaxNameLength { // not worth remembering
		return g.passing(name, book)
	}
	slot := &g.spill.names[maphash.String(g.spill.seed, name)%overflowNames]
	if r := slot.Load(); r != nil && r.name == name && r.patterns == book {
		return r
	}
	r := g.passing(strings.Clone(name), book)
	for i := range r.plan.Load().rules {
		r.plan.Load().rules[i].hold.rule.matched.Store(true)
	}
	slot.Store(r)
	return r
}

// passing returns a resource with the account of the overflow, under the rules
// that match the name.
func (g *registry) passing(name string, book *patternBook) *resource {
	r := g.newResource(name, g.overflow.account)
	r.patterns = book
	p := planner{overflow: true}
	for _, rule := range book.rules {
		if rule.matches(name) {
			h := &hold{limiter: rule.hold.limiter, rule: rule.flowRule}
			h.refusals.about(name, rules.KindFlow, rule.terms.Name(), rule.hold.refusals.tally)
			p.add(rule.terms, h)
		}
	}
	r.plan.Store(p.plan(0))
	return r
}

// matched gives a new resource the rules whose patterns match its name. The
// caller holds g.mu.
func (g *registry) matched(r *resource) {
	var p planner
	now := g.engine.clock.Now()
	for _, rule := range g.spill.patterns.Load().rules {
		if rule.matches(r.name) {
			p.add(rule.terms, newHold(rule.flowRule, r, now))
		}
	}
	if len(p.holds) > 0 {
		r.holds = p.holds
		r.plan.Store(p.plan(0))
	}
}

// again returns the resource of the name, the same one unless it was forgotten or
// had found no room: then it may have rules of its own by now, or others.
func (r *resource) again(name string) *resource {
	if r.evicted.Load() || r.account == r.engine.resources.overflow.account {
		return r.engine.resources.get(name)
	}
	return r
}
