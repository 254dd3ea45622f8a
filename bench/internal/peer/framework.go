package peer

import (
	"fmt"
	"time"
)

// What rules of a kind have in common.
const (
	warmUpPeriod = 10 * time.Second
	longestWait  = time.Minute // in a queue: longer than any measurement lasts
)

// Kind is how a rule controls a flow.
type Kind int

// The kinds of rules that every framework has.
const (
	Reject Kind = iota
	WarmUp
	Throttle
)

// Rule is one rate ceiling on one resource, in calls per second.
type Rule struct {
	Resource string
	Limit    float64
	Kind     Kind
}

// Framework is a library that guards named resources by rules.
type Framework struct {
	Name string

	// New returns it anew, without rules. Sentinel anew is the same with other
	// settings; see [Reset].
	New func(Settings) Guards
}

// Guards is a framework at work.
type Guards interface {
	// Prepare puts rules into the framework's own form. What it returns loads them,
	// in place of all that were loaded before.
	Prepare(set []Rule) (load func() error)

	// Call enters the resource and exits it. It returns false when it was refused.
	Call(resource string) bool

	// Enter enters the resource, which has no rule that refuses. Call what it
	// returns to exit.
	Enter(resource string) (exit func(), err error)
}

// Frameworks returns those that guard resources by rules.
func Frameworks() []Framework {
	return []Framework{
		{Baseline, func(s Settings) Guards { return penstockGuards{newEngine(s)} }},
		{sentinelName, func(s Settings) Guards {
			s.applyToSentinel()
			return sentinel{}
		}},
	}
}

// Names returns so many names of resources, all with that prefix.
func Names(prefix string, count int) []string {
	list := make([]string, count)
	for i := range list {
		list[i] = fmt.Sprintf("%s:resource-%d", prefix, i)
	}
	return list
}

// RulesOn returns a rule on each resource, with a limit that is never reached.
func RulesOn(resources []string, kind Kind) []Rule {
	set := make([]Rule, len(resources))
	for i, resource := range resources {
		set[i] = Rule{Resource: resource, Limit: Huge, Kind: kind}
	}
	return set
}
