package core

import (
	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/match"
	"github.com/penstock-go/penstock/rule"
)

// patternSet is the rules with patterns that are in force, by kind and name. It never
// changes.
type patternSet struct {
	version uint64       // the generation in which it came into force
	index   *match.Index // of the patterns
	rules   []patternRule

	switches *switchTable // what is switched in that generation
}

// patternRule is a rule with a pattern as it was when the set was made.
type patternRule struct {
	*activeRule
	version rule.Rule
	target  rule.Target
	excepts func(string) bool
	limiter call.VersionedLimiter // of the names beyond the bound
	tally   *call.Tally           // of what the rule refuses of them
}

// newPatternSet returns the set of all rules with patterns, given their states in the
// overflow, and of what is switched.
func newPatternSet(states []*ruleState, index *match.Index, version uint64, switches *switchTable) *patternSet {
	patterns := &patternSet{version: version, index: index, rules: make([]patternRule, 0, len(states)), switches: switches}
	for _, state := range states {
		a := state.rule
		patterns.rules = append(patterns.rules, patternRule{a, a.rule, a.target(), a.excepts, state.limiter, state.tally})
	}
	return patterns
}

// matching calls each with the rules that guard the resource of a name.
func (b *patternSet) matching(name string, each func(*patternRule)) {
	if len(b.rules) == 0 {
		return
	}
	var few [32]int
	for _, place := range b.index.Append(few[:0], name) {
		if r := &b.rules[place]; name != r.related && (r.excepts == nil || !r.excepts(name)) {
			each(r)
		}
	}
}
