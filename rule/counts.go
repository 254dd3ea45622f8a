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
