package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/recording"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// UnjudgedRule is a rule of which a replay cannot tell whom it refuses, as the recording does not have the
// values that it looks for. No call is refused by it but those that it refused when they were recorded.
type UnjudgedRule struct {
	Kind string `json:"kind"`
	Rule string `json:"rule"`
	Why  string `json:"why"`

	// Stands says that calls which a rule of that name refused when they were recorded are refused again:
	// unless the rule differs from the one to compare with.
	Stands bool `json:"stands"`
}

// unjudged is the rules of a set that cannot be judged by a recording.
type unjudged struct {
	rules  []UnjudgedRule
	stands []bool // of each rule of the recording: its refusals are repeated
}

// judge returns the rules of a set that can be judged by the recording, and which cannot. The refusals of
// those stand that are the same in against, unless that is nil.
func (c *replayCalls) judge(set rules.Set, against *rules.Set) (rules.Set, unjudged) {
	before := make(map[rule.Key]rule.Rule)
	if against != nil {
		for r := range against.All() {
			before[r.Key()] = r
		}
	}
	found := unjudged{stands: make([]bool, len(c.Rules))}
	var judged []rule.Rule
	for r := range set.All() {
		why := c.whyUnjudged(r)
		if why == "" {
			judged = append(judged, r)
			continue
		}
		was, known := before[r.Key()]
		stands := !r.Target().Shadow && (against == nil || known && was.Equal(r))
		found.rules = append(found.rules, UnjudgedRule{string(r.Key().Kind), r.Key().Name, why, stands})
		if i := slices.Index(c.Rules, recording.Rule{Kind: string(r.Key().Kind), Name: r.Key().Name}); i >= 0 {
			found.stands[i] = stands
		}
	}
	return rules.NewTable().WithRules(set, slices.Values(judged)), found
}

// whyUnjudged says why the recording does not tell whom a rule refuses, "" if it does.
func (c *replayCalls) whyUnjudged(r rule.Rule) string {
	var missing, hashed []string
	for _, key := range r.Attributes() {
		switch {
		case key == rule.KeyOrigin && !c.ownOrigins: // callers are recorded as they are
		case !slices.Contains(c.Keys, key):
			missing = append(missing, key)
		case c.Hashed && r.NamesValues():
			hashed = append(hashed, key)
		}
	}
	switch {
	case len(missing) > 0:
		return "no recorded call has " + strings.Join(missing, " or ")
	case len(hashed) > 0:
		return "it names values of " + strings.Join(hashed, " and ") + ", which are recorded as hashes"
	}
	return ""
}

// haveOwnOrigins says whether calls have an attribute of the key of callers, in place of a caller.
func haveOwnOrigins(of *recording.Recording) bool {
	key := slices.Index(of.Keys, rule.KeyOrigin)
	return key >= 0 && slices.ContainsFunc(of.Calls, func(c recording.Call) bool {
		return c.Origin == 0 && slices.ContainsFunc(of.AttributesOf(&c), func(a recording.Attribute) bool { return int(a.Key) == key })
	})
}

// maxUnjudgedNotes is how many rules that are not judged have a note each.
const maxUnjudgedNotes = 20

// notes say which rules are not judged.
func (u *unjudged) notes(compared bool) (notes []string) {
	for _, r := range u.rules[:min(len(u.rules), maxUnjudgedNotes)] {
		what := "it refuses no call here, as it is not one of the rules to compare with"
		switch {
		case r.Stands && compared:
			what = "the calls that it refused when they were recorded are refused again"
		case r.Stands:
			what = "the calls that a rule of this name refused when they were recorded are refused again"
		case !compared:
			what = "it refuses no call"
		}
		notes = append(notes, fmt.Sprintf("%s rule %s is not judged: %s; %s", r.Kind, rule.Quote(r.Rule), r.Why, what))
	}
	if more := len(u.rules) - maxUnjudgedNotes; more > 0 {
		notes = append(notes, fmt.Sprintf("%d more rules are not judged", more))
	}
	return notes
}

// list returns the rules for a report.
func (u *unjudged) list() []UnjudgedRule {
	slices.SortFunc(u.rules, func(a, b UnjudgedRule) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Rule, b.Rule)) })
	if u.rules == nil {
		return []UnjudgedRule{} // in JSON an empty list
	}
	return u.rules
}
