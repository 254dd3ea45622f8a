package fault

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/internal/document"
	"github.com/penstock-go/penstock/rule"
)

// Ranges of the fields of a [Rule].
const (
	minPercent = 0.0001
	maxPercent = 100

	minDelay = time.Millisecond
	maxDelay = 10 * time.Minute

	minHTTP = 400
	maxHTTP = 599

	// maxDelayed is how many calls a limiter delays at once. The calls that are chosen
	// beyond are not delayed; those of a rule that aborts are refused at once.
	maxDelayed = 10_000
)

// The states of a rule on a resource.
const (
	Active = "active"
	Ended  = "ended" // [Rule.Until] has come
	Off    = "off"   // an operator has turned it off
)

// Rule injects a fault into a share of the calls of a resource: it delays them, refuses
// them, or first delays and then refuses them. It is a plain value: copies share nothing,
// and two rules are the same rule when they are equal.
type Rule struct {
	// Name identifies the rule in errors, logs and metrics. Unique among fault rules.
	// Defaults to the resource, or to the pattern.
	Name string

	// Resource is the exact name of the resource. A rule has either a Resource or a
	// Match.
	Resource string

	// Match is for every resource whose name matches the pattern: a glob, or after a "~"
	// a regular expression. See the package match.
	Match string

	// Except are names of resources, or patterns of names, that the rule is not for
	// though they match. At most 100. Match only.
	Except rule.Strings

	// Shared makes all resources that match have one state and one bound of 10,000
	// together. It is "perResource: false" in documents. Match only.
	Shared bool

	// Percent is how many of 100 calls are chosen, at random and each by itself. From
	// 0.0001 to 100.
	Percent float64

	// Delay is how long a chosen call is delayed, unless its context or the rule ends
	// before. From 1 ms to ten minutes. Zero does not delay: then the rule has an
	// Abort.
	Delay time.Duration

	// Abort refuses the chosen calls, after the delay if there is one. The zero value
	// refuses none: then the rule has a Delay.
	Abort Abort

	// Until is when the rule ends: at this instant and later it injects nothing.
	// Required; from 1970 to 2262.
	Until time.Time

	// Origin restricts the rule to calls of that caller; [rule.OtherOrigins] to those
	// of callers that no rule on the resource names, unnamed ones included. Left out,
	// the rule is for all calls.
	Origin string

	// Shadow makes the rule choose and count calls, but neither delay nor refuse them.
	Shadow bool
}

// Abort says what adapters answer to calls that the rule refuses. One that has only one of
// the two answers calls of the other protocol with 503 or UNAVAILABLE.
type Abort struct {
	HTTP int    // a status from 400 to 599; 0 if not given
	GRPC string // the name of a code, such as UNAVAILABLE; "" if not given
}

// aborts says whether chosen calls are refused.
func (r *Rule) aborts() bool { return r.Abort != Abort{} }

// withDefaults returns the rule with its end in UTC and without a monotonic reading, so
// that rules of the same end are equal.
func withDefaults(r *Rule) {
	r.Until = r.Until.Round(0).UTC()
}

// validate returns the mistakes in the fields that only this kind has.
func validate(r *Rule) []rule.Fault {
	var f rule.Faults
	if !rule.Within(r.Percent, minPercent, maxPercent) {
		f.Add("percent", "is %v: must be from %v to %d, of 100 calls", r.Percent, minPercent, maxPercent)
	}
	switch {
	case r.Delay == 0 && !r.aborts():
		f.Add("delay", "is missing: write how long calls are delayed, or refuse them with abort: {http: 503}")
	case r.Delay != 0 && !rule.Within(r.Delay, minDelay, maxDelay):
		f.Add("delay", "is %v: must be from %v to %v", r.Delay, minDelay, maxDelay)
	}
	if r.Abort.HTTP != 0 && !rule.Within(r.Abort.HTTP, minHTTP, maxHTTP) {
		f.Add("abort.http", "is %d: must be the status of an error, from %d to %d", r.Abort.HTTP, minHTTP, maxHTTP)
	}
	if _, fault := document.ReadChoice(document.TextValue(r.Abort.GRPC), codes()); fault != "" {
		f.Add("abort.grpc", "%s", fault)
	}
	switch {
	case r.Until.IsZero():
		f.Add("until", missingUntil)
	case r.Until.Before(time.Unix(0, 0)) || r.Until.After(time.Unix(0, math.MaxInt64)):
		f.Add("until", "is %s: must be from 1970 to 2262", r.Until.Format(time.RFC3339))
	}
	return f
}

const missingUntil = "is missing: write when the rule ends, such as 2030-06-01T00:00:00Z; nothing is injected from then on"

// codes returns the names of the codes of gRPC that stand for errors.
func codes() []string {
	return []string{
		"CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
		"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
		"UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
	}
}
