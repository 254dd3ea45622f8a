// Package quota is a whole kind of rule that does not come with Penstock: at most so many
// tokens a day for each value of an attribute, such as each user. It has what a kind can
// hardly do without, and uses nothing but package rule:
//
//   - quota.go has the rule, and what the kind says of itself,
//   - limiter.go has the limiter that enforces a rule on a resource,
//   - counts.go has the state, which all versions of a rule have in common.
//
// Engines know the kind by core.Config.Kinds, and examples/quota/penstock is a command line
// that knows it.
package quota

import (
	"cmp"
	"math"

	"github.com/penstock-go/penstock/rule"
)

// Rule is a limit on how many tokens calls with one value of an attribute may take in a day.
// Calls that lack the attribute pass.
type Rule struct {
	// Name is unique among the rules of the kind. It defaults to Resource or Match.
	Name string

	// Resource is an exact name, Match a pattern of names; a rule has one of them.
	Resource, Match string

	// Shared makes all resources that match count together.
	Shared bool

	// Param is the key of the attribute. Defaults to "user".
	Param string

	// PerDay is how many tokens each value has from midnight to midnight, UTC; 0 blocks all.
	// At most 2147483647.
	PerDay int

	// Origin restricts the rule to the calls of one caller.
	Origin string

	// Shadow makes the rule count and decide, but refuse nothing.
	Shadow bool
}

// DefaultParam is the attribute that rules look at which name none.
const DefaultParam = "user"

// Kind returns the kind. Documents have its rules in a list "quota".
func Kind() *rule.Type[Rule] {
	return rule.Define(rule.Spec[Rule]{
		Kind: "quota", Phase: rule.PhaseValue, Reason: rule.RateLimited, Common: common,
		Fields: []rule.Field[Rule]{
			rule.FieldOf("param", func(r *Rule) *string { return &r.Param }).
				Says("the attribute whose values have a quota each").Otherwise(DefaultParam),
			rule.FieldOf("perDay", func(r *Rule) *int { return &r.PerDay }).
				Required("is missing: write how many tokens each value has a day").
				Says("tokens from midnight to midnight, UTC; 0 blocks all"),
		},
		Examples: []rule.Example[Rule]{
			{
				About: "at most 500 orders a day for each user", Fields: []string{"name", "resource", "param", "perDay"},
				Rule: Rule{Name: "orders-a-day", Resource: "orders:create", Param: "user", PerDay: 500},
			},
			{
				About:  "what would happen with one quota for all reports, of the calls of one caller?",
				Fields: []string{"match", "perResource", "param", "perDay", "origin", "shadow"},
				Rule:   Rule{Match: "reports:*", Shared: true, Param: "tenant", PerDay: 10_000, Origin: "batch", Shadow: true},
			},
		},
		Defaults:   withDefaults,
		Validate:   validate,
		Attributes: func(r *Rule) []string { return []string{r.Param} },
		New:        newLimiter,
		Adopt:      adopt,
		Gauges:     []rule.Gauge{{Name: "values", Help: "Values of the attribute that have used some of their quota today."}},
	})
}

func common(r *Rule) rule.Common {
	return rule.Common{
		Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow,
	}
}

func withDefaults(r *Rule) {
	r.Param = cmp.Or(r.Param, DefaultParam)
}

// validate returns all mistakes in the fields of the kind. The engine has judged the others.
func validate(r *Rule) []rule.Fault {
	var faults rule.Faults
	if !rule.Within(r.PerDay, 0, math.MaxInt32) {
		faults.Add("perDay", "is %d: must be from 0 to %d", r.PerDay, math.MaxInt32)
	}
	if fault := rule.CheckName(r.Param); fault != "" {
		faults.Add("param", "%s", fault)
	}
	return faults
}
