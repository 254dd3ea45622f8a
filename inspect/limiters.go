package inspect

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// MaxLimiters is how many limiters a [Status] has at the most.
const MaxLimiters = 1000

// Limiter is the state of a rule on a resource, for kinds of rules that have states or
// gauges, such as circuit breakers and limits on concurrency.
type Limiter struct {
	// Resource is the resource that the rule guards, or the pattern of a rule that
	// several resources share.
	Resource string `json:"resource"`

	Kind   rules.Kind `json:"kind"`
	Rule   string     `json:"rule"`
	Shadow bool       `json:"shadow,omitempty"`

	State  string  `json:"state,omitempty"` // such as "open"; "" for kinds that have no states
	Gauges []Gauge `json:"gauges,omitempty"`
}

// limitersOf returns the limiters of an engine: those that are not in the first of their
// states before the others, then by resource, kind and rule.
func limitersOf(engine *core.Engine) []Limiter {
	var changed, usual []Limiter // those in another state than the first, and the others
	shared := make(map[rule.Key]bool)
	for _, r := range engine.Snapshot().Resources {
		for i := range r.Rules {
			of := &r.Rules[i]
			kind := of.Rule.Type()
			if len(kind.States())+len(kind.Gauges()) == 0 {
				continue
			}
			l := Limiter{Resource: r.Name, Kind: of.Kind, Rule: of.Name, Shadow: of.Shadow, State: of.State}
			if target := of.Rule.Target(); target.Shared {
				key := of.Rule.Key()
				if shared[key] {
					continue
				}
				shared[key], l.Resource = true, target.Match
			}
			l.Gauges = gaugesOf(of)
			if states := kind.States(); len(states) > 0 && of.State != states[0] {
				changed = append(changed, l)
			} else {
				usual = append(usual, l)
			}
		}
	}
	for _, limiters := range [][]Limiter{changed, usual} {
		slices.SortFunc(limiters, func(a, b Limiter) int {
			return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Rule, b.Rule))
		})
	}
	limiters := slices.Concat(changed, usual)
	return limiters[:min(len(limiters), MaxLimiters)]
}

// gaugesOf returns the gauges of a rule with their names.
func gaugesOf(of *core.RuleSnapshot) []Gauge {
	var gauges []Gauge
	for i, gauge := range of.Rule.Type().Gauges() {
		gauges = append(gauges, Gauge{gauge.Name, of.Gauges[i]})
	}
	return gauges
}
