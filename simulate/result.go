package simulate

import "slices"

// Result is what became of a load. Its JSON is what the command line writes.
type Result struct {
	// Seconds has a row for every second of the duration and every resource of
	// the load, by second, then by resource.
	Seconds []Second `json:"seconds"`

	// Events has a row for each call in the order of arrival, if
	// [Options.Events] asked for them; else it is empty.
	Events []Event `json:"events"`
}

// Second is what happened on a resource in one second. It counts calls, not
// tokens.
type Second struct {
	Second   int    `json:"second"` // from 0
	Resource string `json:"resource"`

	Offered int `json:"offered"` // calls that arrived in this second
	Passed  int `json:"passed"`  // calls that were let through in it, at once or after a wait
	Blocked int `json:"blocked"` // of those that arrived in it, how many were refused, then or later
	Waited  int `json:"waited"`  // of those that were let through in it, how many after a wait

	// Ceiling is how many tokens a second the rules allowed when the second
	// began, the lowest of them that apply to a call of the load; nil when none
	// does. Shadow rules are left out.
	Ceiling *float64 `json:"ceiling"`
}

// Event is what became of one call.
type Event struct {
	T        float64 `json:"t"` // seconds until it arrived
	Resource string  `json:"resource"`
	Outcome  string  `json:"outcome"` // [Pass] or [Block]
	Wait     float64 `json:"wait"`    // seconds from then until the outcome; 0 when it came at once
	Rule     string  `json:"rule"`    // what refused the call; "" when it passed
	Kind     string  `json:"kind"`    // of the rule: "flow"
}

// The outcomes of calls.
const (
	Pass  = "pass"
	Block = "block"
)

// Passed returns how many calls of the resource were let through in each
// second.
func (r Result) Passed(resource string) []int {
	return r.each(resource, func(s Second) int { return s.Passed })
}

// Blocked returns how many of the calls of the resource that arrived in each
// second were refused.
func (r Result) Blocked(resource string) []int {
	return r.each(resource, func(s Second) int { return s.Blocked })
}

func (r Result) each(resource string, count func(Second) int) []int {
	var counts []int
	for _, s := range r.Seconds {
		if s.Resource == resource {
			counts = append(counts, count(s))
		}
	}
	return counts
}

// resourcesOf returns the names of the resources of a load, sorted.
func resourcesOf(load Load) []string {
	names := make([]string, len(load.Streams))
	for i, s := range load.Streams {
		names[i] = s.Resource
	}
	slices.Sort(names)
	return slices.Compact(names)
}
