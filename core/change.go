package core

import (
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/match"
)

// change is what becomes of rules in one swap. It is gathered part by part.
type change struct {
	generation uint64
	now        clock.Instant

	released  map[string]*flowRule   // in force, and removed from their place in a part
	updated   []*flowRule            // in force, and given other terms at their place
	newcomers []*flowRule            // that stand where others stood, or none
	contested map[string]struct{}    // names that several parts have a rule of
	losers    map[*document]struct{} // that have a rule whose name another part has got

	entering []*flowRule // that count from nothing
	adopting []adoption
	leaving  []*flowRule
	patterns []match.Pattern // of all of these
	moved    []*flowRule     // that go on, but stand elsewhere

	added, replaced, removed int
}

// adoption is a rule that goes on, on other terms.
type adoption struct {
	rule  *flowRule
	terms *flow.Terms
}

// newChange begins a change for the coming generation.
func (e *Engine) newChange() *change {
	return &change{
		generation: e.generation.Load() + 1, now: e.clock.Now(),
		released: make(map[string]*flowRule), contested: make(map[string]struct{}),
		losers: make(map[*document]struct{}),
	}
}

func (c *change) isEmpty() bool {
	return c.added+c.replaced+c.removed+len(c.adopting)+len(c.moved) == 0
}

// hasPatterns says whether rules with patterns are among those that change or move.
func (c *change) hasPatterns() bool {
	return len(c.patterns) > 0 || slices.ContainsFunc(c.moved, (*flowRule).hasPattern)
}

// edit makes the book hold what is given as a part now; before, the rules at the
// differing places and beyond the last were others. Which of the new rules are in
// force is resolved when all parts are known: see settle.
func (b *ruleBook) edit(c *change, p *part, differing []int) {
	c.updated = slices.Grow(c.updated, len(differing)) // most go on
	for _, i := range differing {
		terms := flow.Compile(p.given.Flow[i].WithDefaults(), c.generation)
		if i == len(p.flow) {
			p.flow = append(p.flow, nil)
		} else if present := p.flow[i]; terms.Name() != present.terms.Name() {
			b.release(c, present)
		} else if present.inForce {
			present.next = terms
			c.updated = append(c.updated, present)
			continue
		} else {
			present.terms = terms
			continue
		}
		p.flow[i] = &flowRule{terms: terms, part: p, index: i}
		c.newcomers = append(c.newcomers, p.flow[i])
	}
	for _, gone := range p.flow[len(p.given.Flow):] {
		b.release(c, gone)
	}
	p.flow = cut(p.flow, len(p.given.Flow))
}

// release takes note that a part has a rule no longer.
func (b *ruleBook) release(c *change, rule *flowRule) {
	name := rule.terms.Name()
	if !rule.inForce {
		b.removeWaiting(rule)
		return
	}
	c.released[name] = rule
	delete(b.flow, name)
	if len(b.waiting[name]) > 0 {
		c.contested[name] = struct{}{}
	}
}

// settle decides which rules are in force, and what becomes of those that were.
func (b *ruleBook) settle(c *change) {
	for _, newcomer := range c.newcomers {
		b.claim(c, newcomer)
	}
	for name := range c.contested {
		b.resolve(c, name)
	}
	c.adopting = slices.Grow(c.adopting, len(c.updated))
	for _, rule := range c.updated {
		if next := rule.next; b.flow[next.Name()] == rule {
			b.succeed(c, rule, next, rule.part, rule.index)
		}
		rule.next = nil
	}
	for _, newcomer := range c.newcomers {
		b.putIn(c, newcomer)
	}
	for _, rule := range c.released {
		c.removed++
		c.leave(rule)
		b.former.keep(rule, c.now)
	}
	if c.hasPatterns() {
		b.patterns = slices.DeleteFunc(b.patterns, (*flowRule).isGone)
		slices.SortFunc(b.patterns, byPlace)
	}
}

// putIn puts a newcomer in force if it has its name: in the place of the rule that
// had the name before, if there is one.
func (b *ruleBook) putIn(c *change, newcomer *flowRule) {
	name := newcomer.terms.Name()
	switch winner := b.flow[name]; {
	case winner.part != newcomer.part:
		c.lose(newcomer.part)
	case winner != newcomer || newcomer.inForce:
		// It is in force already.
	case c.released[name] != nil:
		present := c.released[name]
		delete(c.released, name)
		b.succeed(c, present, newcomer.terms, newcomer.part, newcomer.index)
	default:
		c.added++
		newcomer.before = b.former.take(newcomer)
		b.enter(c, newcomer)
	}
}

// succeed puts terms, which stand at that place, in the place of a rule of their
// name. Where it can, the rule goes on.
func (b *ruleBook) succeed(c *change, present *flowRule, terms *flow.Terms, p *part, index int) {
	stands := present
	switch {
	case present.terms.Same(terms):
	case terms.CanFollow(present.terms):
		c.adopting = append(c.adopting, adoption{present, terms})
		c.concern(present)
	default:
		stands = &flowRule{terms: terms}
		if terms.CountsLike(present.terms) {
			stands.before = present
		} else { // it may be put back
			stands.before = b.former.take(stands)
			b.former.keep(present, c.now)
		}
		was, is := present.terms.Rule(), terms.Rule()
		stands.matched.Store(was.Resource == is.Resource && was.Match == is.Match && present.matched.Load())
		c.replaced++
		c.leave(present)
		b.enter(c, stands)
	}
	switch {
	case stands != present:
		b.place(stands, p, index)
	case present.part != p || present.index != index:
		b.place(present, p, index)
		c.moved = append(c.moved, present)
	}
}

// place makes the rule stand there.
func (b *ruleBook) place(rule *flowRule, p *part, index int) {
	rule.part, rule.index = p, index
	p.flow[index] = rule
	b.flow[rule.terms.Name()] = rule
}

func (b *ruleBook) enter(c *change, rule *flowRule) {
	rule.start(c.now)
	rule.inForce = true
	c.entering = append(c.entering, rule)
	if rule.hasPattern() {
		b.patterns = append(b.patterns, rule)
	}
	c.concern(rule)
}

func (c *change) leave(rule *flowRule) {
	rule.inForce = false
	c.leaving = append(c.leaving, rule)
	c.concern(rule)
}

func (c *change) concern(rule *flowRule) {
	if rule.hasPattern() {
		c.patterns = append(c.patterns, *rule.pattern)
	}
}
