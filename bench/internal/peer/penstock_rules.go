package peer

import (
	"context"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

// PenstockResource is the resource that [PenstockRules] are for.
const PenstockResource = resource

// PenstockRule is rules of Penstock that let every call of the resource pass.
type PenstockRule struct {
	Name string // as in the tables
	Set  rules.Set
}

// NewEngine returns an engine under the rules.
func (r PenstockRule) NewEngine() (*core.Engine, error) { return asUsual().under(r.Set) }

// PenstockRules returns no rule, and one of each kind.
func PenstockRules() []PenstockRule {
	return []PenstockRule{
		{Name: "no-rule"},
		{"flow", rules.Set{Flow: flowRules()}},
		{"isolation", rules.Set{Isolation: isolationRules(manyPlaces)}},
		{"breaker", rules.Set{Breaker: breakerRules(fewestCalls)}},
		{"adaptive", rules.Set{Adaptive: []adaptive.Rule{{Resource: resource, InitialLimit: manyPlaces}}}},
	}
}

// usage is a way to use Penstock.
type usage struct {
	name  string
	clock func() clock.Clock
	try   func(*core.Engine) Try
}

func asUsual() usage { return usage{Baseline, clock.System, byName} }

func atItsFastest() usage { return usage{Fastest, coarseClock, resolved} }

// under returns an engine with the rules.
func (u usage) under(set rules.Set) (*core.Engine, error) {
	engine := newEngine(Settings{Clock: u.clock()})
	return engine, engine.Load(set)
}

// passing returns calls that the rules let pass.
func (u usage) passing(set rules.Set) func() (Try, error) {
	return func() (Try, error) {
		engine, err := u.under(set)
		return u.try(engine), err
	}
}

func penstockIsolation(u usage) Protection {
	return Protection{
		Name:    u.name,
		Passing: u.passing(rules.Set{Isolation: isolationRules(manyPlaces)}),
		Refusing: func() (Try, error) {
			engine, err := u.under(rules.Set{Isolation: isolationRules(1)})
			if err != nil {
				return nil, err
			}
			_, err = engine.Entry(context.Background(), resource) // it has the place as long as the engine exists
			return u.try(engine), err
		},
	}
}

func penstockBreaker(u usage) Protection {
	return Protection{
		Name:    u.name,
		Passing: u.passing(rules.Set{Breaker: breakerRules(fewestCalls)}),
		Refusing: func() (Try, error) {
			engine, err := u.under(rules.Set{Breaker: breakerRules(1)})
			if err != nil {
				return nil, err
			}
			guard, err := engine.Entry(context.Background(), resource)
			guard.Fail(errFailed)
			guard.Exit()
			return u.try(engine), err
		},
	}
}

func penstockComposition() Protection {
	return Protection{Name: Baseline, Passing: asUsual().passing(rules.Set{
		Flow: flowRules(), Isolation: isolationRules(manyPlaces), Breaker: breakerRules(fewestCalls),
	})}
}

func flowRules() []flow.Rule { return []flow.Rule{{Resource: resource, Limit: Huge}} }

func isolationRules(limit int) []isolation.Rule {
	return []isolation.Rule{{Resource: resource, Limit: limit}}
}

func breakerRules(minCalls int) []breaker.Rule {
	return []breaker.Rule{{
		Resource: resource, Strategy: breaker.ErrorRatio, Threshold: failureRatio, Window: failureWindow,
		MinCalls: minCalls, OpenFor: staysOpenFor,
	}}
}
