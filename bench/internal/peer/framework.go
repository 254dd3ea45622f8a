package peer

import (
	"fmt"
	"time"
)

// The settings that the rules of one kind share.
const (
	warmUpPeriod = 10 * time.Second
	longestWait  = time.Minute // in a queue: longer than any measurement lasts
)

// Kind says what a rule does with calls over the limit.
type Kind int

// The kinds of rules that every framework has.
const (
	Reject Kind = iota
	WarmUp
	Throttle
)

// Rule is a rate limit on one resource, in calls per second.
type Rule struct {
	Resource string
	Limit    float64
	Kind     Kind
}

// Framework is a library that guards named resources by rules.
type Framework struct {
	Name string

	// New returns a new instance without rules. Sentinel has only one, to which New
	// applies the settings; see [Reset].
	New func(Settings) Guards
}

// Guards is an instance of a framework.
type Guards interface {
	// Prepare translates rules into the framework's own. It returns a function that
	// loads them and thereby replaces all rules that were loaded before.
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

// Names returns names of resources with that prefix.
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
