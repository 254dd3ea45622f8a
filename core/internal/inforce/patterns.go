package inforce

import (
	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/internal/match"
	"github.com/penstock-go/penstock/rule"
)

// Patterns is the rules with patterns that are in force, by kind and name. It never
// changes.
type Patterns struct {
	Version uint64       // the generation in which it came into force
	Index   *match.Index // of the patterns
	Rules   []PatternRule

	Switches *Switches // what is switched in that generation
}

// PatternRule is a rule with a pattern as it was when the set was made.
type PatternRule struct {
	*Rule
	Version rule.Rule
	Target  rule.Target
	excepts *Exceptions
	Limiter call.VersionedLimiter // of the names beyond the bound
	Tally   *call.Tally           // of what the rule refuses of them
}

// NewPatterns returns the set of all rules with patterns, given their states in the
// overflow, and of what is switched.
func NewPatterns(states []*State, index *match.Index, version uint64, switches *Switches) *Patterns {
	patterns := &Patterns{Version: version, Index: index, Rules: make([]PatternRule, 0, len(states)), Switches: switches}
	for _, state := range states {
		a := state.Rule
		patterns.Rules = append(patterns.Rules, PatternRule{a, a.Version, a.Target(), a.Pattern.Exceptions, state.Limiter(), state.Refusals.Tally})
	}
	return patterns
}

// Matching calls each with the rules that guard the resource of a name.
func (b *Patterns) Matching(name string, each func(*PatternRule)) {
	if len(b.Rules) == 0 {
		return
	}
	var few [32]int
	for _, place := range b.Index.Append(few[:0], name) {
		if r := &b.Rules[place]; name != r.Target.Related && !r.excepts.Include(name) {
			each(r)
		}
	}
}
