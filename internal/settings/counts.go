package settings

import (
	"github.com/penstock-go/penstock/rule"
)

// CountsField returns the field counts, of kinds whose rules can count calls by how they end.
func CountsField[R any](at func(*R) *rule.Counts) rule.Field[R] {
	return rule.ChoiceField("counts", at, rule.CountsCalls, rule.CountsFailures, rule.CountsSuccesses).
		Accepts(string(rule.CountsCalls), "").Given("algorithm", "maxWait").
		Says("calls, failures or successes: which calls take tokens; one under way holds them until it is known").
		Otherwise(string(rule.CountsCalls))
}

// ValidateCounts judges the field of a rule. obstacle says what to change so that tokens can be given
// back when a call ends; "" if they can.
func ValidateCounts(f *rule.Faults, counts rule.Counts, obstacle string) {
	switch counts {
	case "", rule.CountsCalls:
	case rule.CountsFailures, rule.CountsSuccesses:
		if obstacle != "" {
			f.Add("counts", "is %q, but such a rule gives no tokens back when a call ends otherwise: %s, or remove counts", counts, obstacle)
		}
	default:
		f.Add("counts", "is %q: must be %q, %q or %q", counts, rule.CountsCalls, rule.CountsFailures, rule.CountsSuccesses)
	}
}
