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
