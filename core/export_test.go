package core

import (
	"context"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/core/internal/inforce"
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
	r := e.get(resource)
	g := &e.resources
	g.SwapMu.Lock()
	defer g.SwapMu.Unlock()
	p := e.limiters.Planner(resource, nil)
	for _, of := range rules {
		state := &inforce.State{Rule: &inforce.Rule{Key: of.Rule.Key()}}
		state.Refusals = call.NewTalliedRefusals(&r.Node, resource, &state.Rule.Key, of.Rule)
		target := of.Rule.Target()
		p.Add(of.Rule, state, call.VersionedLimiter{Limiter: of.Limiter, Series: e.limiters.series.Add(1)}, &target)
	}
	r.Plan.Store(p.Plan(e.generation.Load()))
}

// CopyGuard returns a copy of a guard, which programs must not make.
func CopyGuard(g *Guard) *Guard {
	return &Guard{
		resource: g.resource, start: g.start, extras: g.extras,
		state: guardState{word: g.state.word, rest: g.state.rest},
	}
}

// FlowStates returns the states of the flow rules on a resource.
func (e *Engine) FlowStates(resource string) (states []rule.Status) {
	for _, of := range e.get(resource).planNow().Rules {
		if of.Rule.Type().Kind() == "flow" {
			states = append(states, of.Limiter.Status(e.clock.Now()))
		}
	}
	return states
}

// CalledNames returns how many names of resources that were called are remembered.
func (e *Engine) CalledNames() int { return len(e.resources.CalledNames()) }

// Bounds that tests look at from outside.
const (
	MaxSwitches = maxSwitches
)

// Arrive returns an arrival of a call.
func (e *Engine) Arrive(ctx context.Context, resource string, wake func(), opts ...Option) *Arrival {
	a := new(Arrival)
	a.Arrive(ctx, e, resource, wake, opts...)
	return a
}

// LoadOf returns how loaded the resource is, and whether its guards were asked for it.
func LoadOf(v ResourceView) (Load, bool) {
	m := v.resource.Load.Load()
	if m == nil {
		return Load{}, false
	}
	level, utilization, rate := m.Present(v.resource, v.At)
	return Load{level, utilization, rate}, true
}

// Named returns whether a rule in force is for this resource alone and names it.
func (s *ResourceSnapshot) Named() bool { return s.named() }
