package peer

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
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
func (r PenstockRule) NewEngine() (*core.Engine, error) {
	engine := newEngine(Settings{})
	return engine, engine.Load(r.Set)
}

// PenstockRules returns no rule, and one of each kind.
func PenstockRules() []PenstockRule {
	return []PenstockRule{
		{Name: "no-rule"},
		{"flow", rules.Set{Flow: passingFlow()}},
	}
}

func passingFlow() []flow.Rule { return []flow.Rule{{Resource: resource, Limit: Huge}} }
