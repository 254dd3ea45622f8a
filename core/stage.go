package core

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
)

// putInForce moves the engine on to a generation and gives every resource that
// changes its plan for it. It returns the limiters that have to be told.
func (e *Engine) putInForce(c change, generation uint64, now clock.Instant) limiterChanges {
	g := &e.resources
	g.mu.Lock()
	defer g.mu.Unlock()
	planners := g.concernedBy(c)
	e.rules.drawUp(planners, g.overflow, now)
	plans := make(map[*resource]*plan, len(planners))
	for _, p := range planners {
		next := p.plan(generation)
		plans[p.resource] = next
		transition := *next
		transition.before = p.resource.plan.Load()
		p.resource.plan.Store(&transition)
	}
	g.publish()
	e.generation.Store(generation) // from here on every call acts by the new set

	limiters := newLimiterChanges(c)
	for resource, next := range plans {
		// Who still acts by the set before does not find its plan any more and
		// asks for the generation again.
		resource.plan.Store(next)
		limiters.note(resource.holds, planners[resource.name].holds)
		resource.holds = planners[resource.name].holds
	}
	if len(c.patterns) > 0 {
		g.usePatterns(e.rules.inForce, e.rules.flow)
	}
	return limiters
}

// concernedBy returns a planner for each resource whose plan changes, by name.
// The caller holds g.mu.
func (g *registry) concernedBy(c change) map[string]*planner {
	planners := make(map[string]*planner, len(c.resources))
	for name := range c.resources {
		planners[name] = &planner{resource: g.pin(name)}
	}
	if len(c.patterns) == 0 {
		return planners
	}
	planners[Overflow] = &planner{resource: g.overflow}
	g.publish()
	for name, r := range *g.known.Load() {
		for _, pattern := range c.patterns {
			if pattern.Matches(name) {
				planners[name] = &planner{resource: r}
				break
			}
		}
	}
	return planners
}

// drawUp adds the rules in force to the planners of the resources that they
// apply to, in their order. On overflow every pattern applies.
func (b *ruleBook) drawUp(planners map[string]*planner, overflow *resource, now clock.Instant) {
	named := make(map[string]bool, len(planners)) // whether a rule names it
	for i := range b.inForce.Flow {
		of := &b.inForce.Flow[i]
		rule := b.flow[of.Name]
		if p := planners[of.Related]; of.Related != "" && p != nil {
			p.count(rule)
			named[of.Related] = true
		}
		if rule.state.pattern == nil {
			if p := planners[of.Resource]; p != nil {
				p.add(rule, p.resource.holdFor(rule, now))
				named[of.Resource] = true
			}
			continue
		}
		for name, p := range planners {
			if p.resource == overflow || rule.matches(name) {
				p.add(rule, p.resource.holdFor(rule, now))
			}
		}
	}
	for name, p := range planners {
		if !named[name] {
			p.resource.engine.resources.unpin(p.resource)
		}
	}
}

// holdFor returns what a rule holds of the resource already, or a new hold. The
// caller holds registry.mu.
func (r *resource) holdFor(rule *flowRule, now clock.Instant) *hold {
	for _, h := range r.holds {
		if h.state == rule.state {
			return h
		}
	}
	return newHold(rule, r, now)
}

// limiterChanges are the limiters that a change of rules has to tell: those that
// go on with newer terms and those that end.
type limiterChanges struct {
	adopting map[*ruleState]*flow.Terms
	retired  map[*ruleState]bool
	adopt    map[limiter]*flow.Terms
	retire   []limiter
}

func newLimiterChanges(c change) limiterChanges {
	l := limiterChanges{
		adopting: make(map[*ruleState]*flow.Terms, len(c.adopting)),
		retired:  make(map[*ruleState]bool, len(c.retired)),
		adopt:    make(map[limiter]*flow.Terms, len(c.adopting)),
	}
	for _, rule := range c.adopting {
		l.adopting[rule.state] = rule.terms
		if rule.state.common != nil {
			l.adopt[*rule.state.common] = rule.terms
		}
	}
	for _, rule := range c.retired {
		l.retired[rule.state] = true
		if rule.state.common != nil {
			l.retire = append(l.retire, *rule.state.common)
		}
	}
	return l
}

// note finds what has to be told among the holds of a resource, those before and
// those after the change.
func (l *limiterChanges) note(before, after []*hold) {
	for _, h := range after {
		if terms := l.adopting[h.state]; terms != nil {
			l.adopt[h.limiter] = terms
		}
	}
	for _, h := range before {
		if l.retired[h.state] {
			l.retire = append(l.retire, h.limiter)
		}
	}
}

// settle tells them.
func (l *limiterChanges) settle(now clock.Instant) {
	for limiter, terms := range l.adopt {
		limiter.adopt(terms, now)
	}
	for _, limiter := range l.retire {
		limiter.retire()
	}
}
