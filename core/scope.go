package core

import (
	"cmp"
	"fmt"

	"github.com/penstock-go/penstock/core/internal/lines"
	"github.com/penstock-go/penstock/rule"
)

// Scope is what is switched off and on together: the rule of Kind and Rule, all rules of a Kind, all
// rules for calls of a Resource, or, as the zero value, all rules of the engine.
type Scope struct {
	Kind     rule.Kind
	Rule     string // with its Kind, which can be left out in Engine.Switch if rules of only one have that name
	Resource string // alone
}

// String returns the scope for people: flow "orders", "kind flow", `resource "orders:create"`, "engine".
func (s Scope) String() string {
	switch {
	case s.Rule != "":
		return rule.Key{Kind: s.Kind, Name: lines.Cut(s.Rule)}.String()
	case s.Kind != "":
		return "kind " + string(s.Kind)
	case s.Resource != "":
		return fmt.Sprintf("resource %q", lines.Cut(s.Resource))
	}
	return "engine"
}

// compare orders scopes: the engine, kinds, rules, resources.
func (s Scope) compare(t Scope) int {
	return cmp.Or(cmp.Compare(s.Resource, t.Resource), cmp.Compare(s.Kind, t.Kind), cmp.Compare(s.Rule, t.Rule))
}
