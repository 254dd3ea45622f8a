package rule

// Counts says which calls take tokens of a rule, by how they end. The zero value is [CountsCalls].
type Counts string

// What a rule can count.
const (
	// CountsCalls counts every call that passes.
	CountsCalls Counts = "calls"

	// CountsFailures counts the calls that have failed, see [Exit.Failed].
	CountsFailures Counts = "failures"

	// CountsSuccesses counts those that have neither failed nor ended in a way that tells nothing,
	// see [Exit.Ignored].
	CountsSuccesses Counts = "successes"
)

// Includes says whether a call that has ended so is one that takes tokens.
func (c Counts) Includes(e *Exit) bool {
	switch c {
	case CountsFailures:
		return e.Failed
	case CountsSuccesses:
		return !e.Failed && !e.Ignored
	}
	return true
}

// CountsField returns the field counts, of kinds whose rules can count calls by how they end.
func CountsField[R any](at func(*R) *Counts) Field[R] {
	return ChoiceField("counts", at, CountsCalls, CountsFailures, CountsSuccesses).Accepts(string(CountsCalls), "").
		Given("algorithm", "maxWait").
		Says("calls, failures or successes: which calls take tokens; one under way holds them until it is known").
		Otherwise(string(CountsCalls))
}

// ValidateCounts judges the field of a rule. obstacle says what to change so that tokens can be given
// back when a call ends; "" if they can.
func (f *Faults) ValidateCounts(counts Counts, obstacle string) {
	switch counts {
	case "", CountsCalls:
	case CountsFailures, CountsSuccesses:
		if obstacle != "" {
			f.Add("counts", "is %q, but such a rule gives no tokens back when a call ends otherwise: %s, or remove counts", counts, obstacle)
		}
	default:
		f.Add("counts", "is %q: must be %q, %q or %q", counts, CountsCalls, CountsFailures, CountsSuccesses)
	}
}
