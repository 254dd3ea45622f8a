package core

import (
	"slices"

	"github.com/penstock-go/penstock/flow"
)

// stage is a change of rules on its way into force: the resources whose plans
// change, and the limiters that have to be told. It is guarded by registry.mu.
type stage struct {
	*change
	registry *registry
	touched  []*resource
	adopt    []adoptingLimiter
	retire   []limiter

	planner planner     // drawing up one plan after the other
	apply   []*flowRule // to the resource whose plan that is
}

// adoptingLimiter is a limiter that goes on with newer terms.
type adoptingLimiter struct {
	limiter
	terms *flow.Terms
}

// putInForce moves the engine on to the generation of the change and gives every
// resource that it concerns its plan for it.
func (e *Engine) putInForce(c *change) {
	rules := len(c.leaving) + len(c.entering) + len(c.adopting)
	s := stage{
		change: c, registry: &e.resources,
		touched: make([]*resource, 0, rules), adopt: make([]adoptingLimiter, 0, len(c.adopting)),
	}
	s.swap(e.rules.patterns)
	now := e.clock.Now()
	for _, of := range s.adopt {
		of.adopt(of.terms, now)
	}
	for _, of := range s.retire {
		of.retire()
	}
}

func (s *stage) swap(patterns []*flowRule) {
	g := s.registry
	g.mu.Lock()
	defer g.mu.Unlock()
	s.changeRules()
	s.touchMatching()
	s.touchMoved()
	for _, r := range s.touched {
		next := s.plan(r, patterns)
		next.before.Store(r.plan.Load())
		r.plan.Store(next)
	}
	g.publish()
	g.engine.generation.Store(s.generation) // from here on every call acts by the new set
	for _, r := range s.touched {
		// Who still acts by the set before does not find its plan any more and
		// asks for the generation again.
		r.plan.Load().before.Store(nil)
	}
	for _, rule := range s.entering {
		rule.before = nil
	}
	if s.hasPatterns() {
		g.usePatterns()
	}
	g.full.Store(false) // there is room for a name that a rule has come to name
}

// changeRules ties the rules to the resources that they name.
func (s *stage) changeRules() {
	for _, rule := range s.leaving {
		s.touch(rule.guarded)
		s.touch(rule.busy)
		if rule.common != nil {
			s.retire = append(s.retire, *rule.common)
		}
	}
	for _, r := range s.touched {
		s.registry.untie(r)
	}
	for _, rule := range s.entering {
		s.registry.tie(rule)
		s.touch(rule.guarded)
		s.touch(rule.busy)
		if rule.before != nil && rule.common != nil {
			s.adopt = append(s.adopt, adoptingLimiter{*rule.common, rule.terms})
		}
	}
	for _, a := range s.adopting {
		a.rule.terms = a.terms
		s.touch(a.rule.guarded)
		s.touch(a.rule.busy)
		if a.rule.common != nil {
			s.adopt = append(s.adopt, adoptingLimiter{*a.rule.common, a.terms})
		}
	}
}

// touch notes that the plan of a resource changes; nil is none.
func (s *stage) touch(r *resource) {
	if r != nil && r.touchedIn != s.generation {
		r.touchedIn = s.generation
		s.touched = append(s.touched, r)
	}
}

// touchMatching touches the resources that a pattern concerns. To overflow every
// pattern applies.
func (s *stage) touchMatching() {
	if len(s.patterns) == 0 {
		return
	}
	s.touch(s.registry.overflow)
	s.registry.publish()
	for name, r := range *s.registry.known.Load() {
		for _, pattern := range s.patterns {
			if pattern.Matches(name) {
				s.touch(r)
				break
			}
		}
	}
}

// touchMoved touches the resources whose rules are to be asked in another order.
func (s *stage) touchMoved() {
	for _, rule := range s.moved {
		if r := rule.guarded; r != nil && len(r.holds) > 1 {
			s.touch(r)
		}
	}
	if slices.ContainsFunc(s.moved, (*flowRule).hasPattern) {
		s.touch(s.registry.overflow)
		s.registry.publish()
		for _, r := range *s.registry.known.Load() {
			if !slices.IsSortedFunc(r.holds, func(a, b *hold) int { return byPlace(a.rule, b.rule) }) {
				s.touch(r)
			}
		}
	}
}

// plan draws up the plan of a resource and notes which of its limiters go on with
// newer terms, and which end.
func (s *stage) plan(r *resource, patterns []*flowRule) *plan {
	p := &s.planner
	p.startOver()
	for _, h := range r.holds {
		h.rule.present = h
	}
	for _, rule := range s.rulesFor(r, patterns) {
		h := rule.present
		rule.present = nil
		if h == nil {
			h = newHold(rule, r, s.now)
			if rule.before != nil && rule.before.present != nil && h.isOwn() {
				h.follow(&rule.before.present.limiter)
				s.adopt = append(s.adopt, adoptingLimiter{h.limiter, rule.terms})
			}
		}
		p.add(rule.terms, h)
		if h.isOwn() && h.adopted != rule.terms {
			h.adopted = rule.terms
			s.adopt = append(s.adopt, adoptingLimiter{h.limiter, rule.terms})
		}
	}
	if r.ties != nil {
		for _, rule := range r.ties.counts {
			p.count(rule)
		}
	}
	for _, h := range r.holds {
		if h.rule.present != nil && h.isOwn() { // nobody has taken it
			s.retire = append(s.retire, h.limiter)
		}
		h.rule.present = nil
	}
	if !slices.Equal(r.holds, p.holds) {
		r.holds = slices.Clone(p.holds)
	}
	return p.plan(s.generation)
}

// rulesFor returns the rules that apply to the resource, in their order.
func (s *stage) rulesFor(r *resource, patterns []*flowRule) []*flowRule {
	s.apply = s.apply[:0]
	if r.ties != nil {
		s.apply = append(s.apply, r.ties.guards...)
	}
	for _, rule := range patterns {
		if r == s.registry.overflow || rule.matches(r.name) {
			s.apply = append(s.apply, rule)
		}
	}
	slices.SortFunc(s.apply, byPlace)
	return s.apply
}
