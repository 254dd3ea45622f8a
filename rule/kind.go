package rule

import (
	"fmt"
	"strconv"
)

// Kind is the name of a kind of rule. Documents have the rules of a kind in a list of
// that name.
type Kind string

// Key identifies a rule: names are unique within a kind.
type Key struct {
	Kind Kind
	Name string
}

// String returns the kind and the name: breaker "pay".
func (k Key) String() string {
	if k.Kind == "" {
		return strconv.Quote(k.Name)
	}
	return fmt.Sprintf("%s %q", k.Kind, k.Name)
}

// Phase is when rules of a kind are asked, relative to other kinds: those that are cheap
// and final first, those that let calls wait before those that count the instant of passing.
type Phase uint8

// The phases, in their order. Rules that demote calls are asked after those that inject faults, whatever the phase of
// their kind, so that all rules which look at priorities see what they have decided. Within a phase, rules for fewer
// calls are asked first: those for one origin, then those for one resource, then those that several resources share;
// then by kind and name.
const (
	PhaseAccess      Phase = iota // who may call at all
	PhaseFault                    // injected faults
	phaseDemotion                 // rules that demote calls, see [Spec.Demotes], of whichever kind
	PhaseOverload                 // what the service can do now
	PhaseHealth                   // what the callee can do now: circuit breakers
	PhaseValue                    // limits for each value of an attribute
	PhaseConcurrency              // how many calls at once, with queues
	PhaseRate                     // how many calls in a time, with queues; windows last
)

// Reason classifies refusals, so that adapters can answer without knowing the kind.
type Reason uint8

// The reasons. Each says what HTTP and gRPC adapters answer by default.
const (
	// RateLimited: too many calls in a time; 429, RESOURCE_EXHAUSTED.
	RateLimited Reason = iota
	// Overloaded: too many calls at once; 503, UNAVAILABLE.
	Overloaded
	// Unavailable: what is called fails; 503, UNAVAILABLE.
	Unavailable
	// Denied: the caller may not call, now or later; 403, PERMISSION_DENIED.
	Denied
	// Injected: a fault that a rule injects; the answer is what the rule says. A wait for
	// such a rule is a delay and not a queue: calls that do not want to wait are delayed
	// too. A call that a guard further down refused for this reason counts as failed. Calls
	// have a [Call.Number].
	Injected
)

// Answer is what adapters answer to the refusals of a rule, for rules that choose it. A
// field that is zero is left to the [Reason].
type Answer struct {
	HTTP int    // a status code, such as 503
	GRPC string // the name of a code, such as "UNAVAILABLE"
}

// String returns the reason as it stands in logs and metrics: "rateLimited".
func (r Reason) String() string {
	switch r {
	case RateLimited:
		return "rateLimited"
	case Overloaded:
		return "overloaded"
	case Unavailable:
		return "unavailable"
	case Denied:
		return "denied"
	case Injected:
		return "injected"
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}
