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

	released  map[string]*flowRule // let go of by a part, and not taken up by another yet
	newcomers []*flowRule          // that stand where others stood, or none

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
		generation: e.generation.Load() + 1, now: e.clock.Now(), released: make(map[string]*flowRule),
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
// differing places and beyond the last were others. Names are taken up at once,
// the rules that bear them are settled when all parts are known.
func (b *ruleBook) edit(c *change, p *part, differing []int) {
	c.adopting = slices.Grow(c.adopting, len(differing)) // most go on
	for _, i := range differing {
		terms := flow.Compile(p.given.Flow[i].WithDefaults(), c.generation)
		if i == len(p.flow) {
			p.flow = append(p.flow, nil)
		} else if present := p.flow[i]; terms.Name() == present.terms.Name() {
			b.succeed(c, present, terms, p, i)
			continue
		} else {
			b.release(c, present)
		}
		newcomer := &flowRule{terms: terms}
		b.place(newcomer, p, i)
		c.newcomers = append(c.newcomers, newcomer)
	}
	for _, gone := range p.flow[len(p.given.Flow):] {
		b.release(c, gone)
	}
	p.flow = cut(p.flow, len(p.given.Flow))
}

// release takes note that a part has a rule no longer.
func (b *ruleBook) release(c *change, rule *flowRule) {
	name := rule.terms.Name()
	c.released[name] = rule
	if b.flow[name] == rule {
		delete(b.flow, name)
	}
}

// settle decides what becomes of the rules that were released and of those that
// came.
func (b *ruleBook) settle(c *change) {
	for _, newcomer := range c.newcomers {
		name := newcomer.terms.Name()
		if present := c.released[name]; present != nil {
			delete(c.released, name)
			b.succeed(c, present, newcomer.terms, newcomer.part, newcomer.index)
			continue
		}
		c.added++
		b.enter(c, newcomer)
	}
	for _, rule := range c.released {
		c.removed++
		c.leave(rule)
	}
	if c.hasPatterns() {
		b.patterns = slices.DeleteFunc(b.patterns, (*flowRule).isGone)
		slices.SortFunc(b.patterns, byPlace)
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
	c.entering = append(c.entering, rule)
	if rule.hasPattern() {
		b.patterns = append(b.patterns, rule)
	}
	c.concern(rule)
}

func (c *change) leave(rule *flowRule) {
	rule.gone = true
	c.leaving = append(c.leaving, rule)
	c.concern(rule)
}

func (c *change) concern(rule *flowRule) {
	if rule.hasPattern() {
		c.patterns = append(c.patterns, *rule.pattern)
	}
}
