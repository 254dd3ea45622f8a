package rule

// OnExceed says what a rule does with a call that is over its limit. The zero value is [ExceedRefuse].
type OnExceed string

// What it can do.
const (
	// ExceedRefuse refuses the call.
	ExceedRefuse OnExceed = "refuse"

	// ExceedDemote lets the call pass with the lowest priority, [PrioritySheddable]. It takes nothing.
	// See [Spec.Demotes].
	ExceedDemote OnExceed = "demote"
)

// OnExceedField returns the field onExceed, of kinds whose rules can demote calls.
func OnExceedField[R any](at func(*R) *OnExceed) Field[R] {
	return ChoiceField("onExceed", at, ExceedRefuse, ExceedDemote).Accepts(string(ExceedRefuse), "").Given("algorithm", "maxWait").
		Says("refuse, or demote: calls over the limit pass with the lowest priority, so that other rules refuse them first").
		Otherwise(string(ExceedRefuse))
}

// ValidateOnExceed judges the field of a rule, of which waits says that calls wait for it; "" if none
// do.
func (f *Faults) ValidateOnExceed(does OnExceed, waits string) {
	switch does {
	case "", ExceedRefuse:
	case ExceedDemote:
		if waits != "" {
			f.Add("onExceed", "is %q, but calls wait for such a rule: %s, or remove onExceed", does, waits)
		}
	default:
		f.Add("onExceed", "is %q: must be %q or %q", does, ExceedRefuse, ExceedDemote)
	}
}
