package core

import (
	"slices"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/match"
)

// stage is a change of rules on its way into force: the resources whose plans
// change, and the limiters that have to be told. It is guarded by registry.upkeep;
// calls go on meanwhile, also first calls of new names.
type stage struct {
	*change
	registry *registry
	touched  []*resource
	drawn    int // so many of them have their next plan
	adopt    []*flow.Limiter
	retire   []*flow.Limiter

	matching []*flowRule  // all rules with patterns, in their order
	index    *match.Index // of them
	changing *match.Index // of the patterns of rules that come, change or go

	planner planner     // drawing up one plan after the other
	apply   []*flowRule // to the resource whose plan that is
	places  []int       // of the patterns that match it
}

// putInForce moves the engine on to the generation of the change and gives every
// resource that it concerns its plan for it.
func (e *Engine) putInForce(c *change) {
	rules := len(c.leaving) + len(c.entering) + len(c.adopting)
	g := &e.resources
	g.upkeep.Lock()
	s := stage{
		change: c, registry: g, matching: e.rules.patterns,
		touched: make([]*resource, 0, rules), adopt: make([]*flow.Limiter, 0, len(c.adopting)),
	}
	s.swap()
	g.upkeep.Unlock()
	now := e.clock.Now()
	for _, of := range s.adopt {
		of.Activate(now)
	}
	for _, of := range s.retire {
		of.Retire(now)
	}
}

func (s *stage) swap() {
	s.begin()
	s.changeRules()
	s.touchConcerned()
	s.touchMoved()
	s.drawUp()
	book := s.nextBook()
	for !s.finish(book) {
		s.drawUp()
	}
	for _, r := range s.touched {
		// Who still acts by the set before does not find its plan any more and
		// asks for the generation again.
		r.plan.Load().before.Store(nil)
	}
	for _, rule := range s.entering {
		rule.before = nil
	}
	if s.hasPatterns() {
		s.registry.forgetOverflowing()
	}
}

// begin has the registry tell of the names that are new from now on. They come with
// a plan for the present generation, like all others.
func (s *stage) begin() {
	g := s.registry
	if s.index = g.spill.patterns.Load().index; s.hasPatterns() {
		s.index = indexOf(s.matching)
	}
	s.changing = match.NewIndex(s.patterns)
	g.mu.Lock()
	g.swapping = true
	g.mu.Unlock()
}

func indexOf(rules []*flowRule) *match.Index {
	patterns := make([]match.Pattern, len(rules))
	for i, rule := range rules {
		patterns[i] = *rule.pattern
	}
	return match.NewIndex(patterns)
}

// drawUp draws up the plans of the resources that were touched since the last time.
func (s *stage) drawUp() {
	for ; s.drawn < len(s.touched); s.drawn++ {
		r := s.touched[s.drawn]
		next := s.plan(r)
		next.before.Store(r.plan.Load())
		r.plan.Store(next)
	}
}

// nextBook returns the pattern book of the coming generation.
func (s *stage) nextBook() *patternBook {
	if !s.hasPatterns() {
		return s.registry.spill.patterns.Load()
	}
	return s.registry.newPatternBook(s.index)
}

// finish moves the engine on to the coming generation, unless names have come that
// this concerns: then they are touched and it returns false.
func (s *stage) finish(book *patternBook) bool {
	g := s.registry
	g.mu.Lock()
	newcomers := g.newcomers
	g.newcomers = nil
	if len(newcomers) == 0 {
		defer g.mu.Unlock()
		g.swapping = false
		g.engine.generation.Store(s.generation) // from here on every call acts by the new set
		g.spill.patterns.Store(book)
		g.full.Store(false) // there is room for a name that a rule has come to name
		return true
	}
	g.mu.Unlock()
	for _, r := range newcomers {
		if s.concerns(r) {
			s.touch(r)
		}
	}
	return false
}

// changeRules ties the rules to the resources that they name.
func (s *stage) changeRules() {
	for _, rule := range s.leaving {
		s.touch(rule.guarded)
		s.touch(rule.busy)
		if rule.common != nil {
			s.retire = append(s.retire, rule.common)
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
			s.adopt = append(s.adopt, rule.common.WithTerms(rule.terms))
		}
	}
	for _, a := range s.adopting {
		a.rule.terms = a.terms
		s.touch(a.rule.guarded)
		s.touch(a.rule.busy)
		if a.rule.common != nil {
			s.adopt = append(s.adopt, a.rule.common.WithTerms(a.terms))
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

// touchConcerned touches the resources that a change of patterns concerns. To
// overflow every pattern applies.
func (s *stage) touchConcerned() {
	if !s.hasPatterns() {
		return
	}
	s.touch(s.registry.overflow)
	for _, r := range s.registry.table.all() {
		if s.concerns(r) {
			s.touch(r)
		}
	}
}

// touchMoved touches the resources of which a rule that names them is to be asked in
// another order.
func (s *stage) touchMoved() {
	for _, rule := range s.moved {
		if r := rule.guarded; r != nil && len(r.holds) > 1 {
			s.touch(r)
		}
	}
}

// concerns says whether a pattern that changes matches the resource, or its rules
// are to be asked in another order.
func (s *stage) concerns(r *resource) bool {
	s.places = s.changing.Append(s.places[:0], r.name)
	if len(s.places) > 0 {
		return true
	}
	return len(s.moved) > 0 && !slices.IsSortedFunc(r.holds, func(a, b *hold) int { return byPlace(a.rule, b.rule) })
}

// plan draws up the plan of a resource and notes which of its limiters go on with
// newer terms, and which end.
func (s *stage) plan(r *resource) *plan {
	p := &s.planner
	p.startOver()
	for _, h := range r.holds {
		h.rule.present = h
	}
	for _, rule := range s.rulesFor(r) {
		h := rule.present
		rule.present = nil
		if h == nil {
			h = newHold(rule, rule.anyKind(r.engine), rule.terms, r, s.now)
			if rule.before != nil && rule.before.present != nil && h.isOwn() {
				h.limiter.Follow(rule.before.present.limiter)
				s.adopt = append(s.adopt, h.limiter.WithTerms(rule.terms))
			}
		}
		limiter := h.limiter.WithTerms(rule.terms)
		p.add(rule.anyKind(r.engine), limiter, h)
		if h.isOwn() && h.adopted != rule.terms {
			h.adopted = rule.terms
			s.adopt = append(s.adopt, limiter)
		}
	}
	if r.ties != nil {
		for _, rule := range r.ties.counts {
			p.count(rule.common.WithTerms(rule.terms))
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
func (s *stage) rulesFor(r *resource) []*flowRule {
	if r == s.registry.overflow {
		return s.matching
	}
	s.apply = s.apply[:0]
	if r.ties != nil {
		s.apply = append(s.apply, r.ties.guards...)
	}
	s.places = s.index.Append(s.places[:0], r.name)
	for _, place := range s.places {
		if rule := s.matching[place]; r.name != rule.related {
			s.apply = append(s.apply, rule)
		}
	}
	slices.SortFunc(s.apply, byPlace)
	return s.apply
}
