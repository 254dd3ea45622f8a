package simulate

import "slices"

// Result is the outcome of a load. The command line writes it as JSON.
type Result struct {
	// Seconds has a row for every second of the duration and every resource of
	// the load, by second, then by resource.
	Seconds []Second `json:"seconds"`

	// Events has a row for each call in the order of arrival, if
	// [Options.Events] asked for them; else it is empty.
	Events []Event `json:"events"`

	// States has a row for each change of a rule's state, by time; for kinds of
	// rules that have states.
	States []StateChange `json:"states"`

	// Limits has a row a second for each limiter of a rule that finds its limit by
	// itself: the sums of all instances.
	Limits []Limit `json:"limits"`

	// Signals has a row a second for each signal that rules read, the mean of all
	// instances; nil if they read none.
	Signals []SignalValue `json:"signals,omitempty"`

	// Fleet has a row a second for each limit that the instances share, and Backend one for
	// what they ask of the backend; nil if there is no such limit. Shadow rules are left
	// out.
	Fleet   []FleetSecond   `json:"fleet,omitempty"`
	Backend []BackendSecond `json:"backend,omitempty"`

	// Outages are those of the load, if there are limits that they concern.
	Outages []OutageSpan `json:"outages,omitempty"`
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

	// Of the calls that ended in this second: how many there are, how many of
	// them failed, by a failure or a timeout, and how many were good, that is all
	// others.
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Good      int `json:"good"`

	// InFlight is the highest number of calls that were under way at a time. A
	// call is under way from the instant at which it passes until it ends; at the
	// instant of its end it is not.
	InFlight int `json:"inFlight"`

	// RTP50 and RTP99 are the median and the 99th percentile of the response
	// times of the calls that ended in this second: the times from passing to the
	// end, in seconds. They are exact: the least response time that 50 or 99 of
	// 100 calls do not exceed. Nil when no call ended.
	RTP50 *float64 `json:"rtP50"`
	RTP99 *float64 `json:"rtP99"`

	// Ceiling is how many tokens a second the rules allowed when the second
	// began, the lowest of them that apply to a call of the load; nil when none
	// does. Shadow rules are left out.
	Ceiling *float64 `json:"ceiling"`
}

// Event is the outcome of one call.
type Event struct {
	T        float64 `json:"t"` // seconds until it arrived
	Resource string  `json:"resource"`
	Outcome  string  `json:"outcome"` // [Pass] or [Block]
	Wait     float64 `json:"wait"`    // seconds from then until the outcome; 0 when it came at once
	Rule     string  `json:"rule"`    // what refused the call; "" when it passed
	Kind     string  `json:"kind"`    // of the rule: "flow"

	// End is when the call ended, in seconds; nil when it was refused. Calls are
	// followed to their ends, also beyond the duration.
	End    *float64 `json:"end"`
	Failed bool     `json:"failed"` // it ended with a failure or by its timeout

	// Value is the value of the call's first attribute: a string, an int64 or a
	// bool; nil when it has none.
	Value    any        `json:"value"`
	Attrs    AttrValues `json:"attrs,omitempty"`   // all attributes of the call
	Priority string     `json:"priority"`          // such as "normal"
	Demoted  bool       `json:"demoted,omitempty"` // a rule gave it the lowest priority
	Retry    int        `json:"retry,omitempty"`   // 1 for the first retry of a call

	// Instance is the number of the instance that the call went to, from 1; 0 if there is
	// only one.
	Instance int `json:"instance,omitempty"`
}

// StateChange is a change of the state of a rule on a resource.
type StateChange struct {
	T        float64 `json:"t"` // seconds since the start
	Resource string  `json:"resource"`
	Rule     string  `json:"rule"`
	Kind     string  `json:"kind"`
	From     string  `json:"from"` // one of the [rule.Spec.States] of the kind; so is To
	To       string  `json:"to"`

	// Instance is the number of the instance whose rule it is, from 1; 0 if there is only
	// one.
	Instance int `json:"instance,omitempty"`
}

// Limit is what a limiter did in a second.
type Limit struct {
	T        float64  `json:"t"` // seconds: when the second began, at which the following were so
	Rule     string   `json:"rule"`
	Limit    *float64 `json:"limit"`    // calls at once; nil for a rule that has no such limit
	InFlight int      `json:"inFlight"` // calls under way
	Queued   int      `json:"queued"`   // calls that waited

	// Shed is how many calls of each priority were refused in the second; for kinds of
	// rules that count them. Priorities without any are left out.
	Shed map[string]int `json:"shed"`

	Kind     string `json:"kind"`     // of the rule
	Resource string `json:"resource"` // or the pattern of a rule that several resources share
}

// SignalValue is what a signal showed when a second began.
type SignalValue struct {
	T      float64  `json:"t"` // seconds
	Signal string   `json:"signal"`
	Value  *float64 `json:"value"` // nil if it could not be read
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

func pointerTo(v float64) *float64 { return &v }
