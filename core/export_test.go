package core

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Start returns the instant at which the call passed.
func (g *Guard) Start() clock.Instant { return g.start }

// Imposed is a rule with a limiter made by hand.
type Imposed struct {
	Rule    rule.Rule
	Limiter rule.Limiter
}

// Impose puts a resource under rules in place of those in force, until they change.
func (e *Engine) Impose(resource string, rules ...Imposed) {
	r := e.resources.get(resource)
	g := &e.resources
	g.upkeep.Lock()
	defer g.upkeep.Unlock()
	var p planner
	for _, of := range rules {
		h := new(hold)
		h.refusals.about(resource, of.Rule, newTally(&r.node))
		p.add(of.Rule, of.Limiter, h)
	}
	r.plan.Store(p.plan(e.generation.Load()))
}
