// Package seats is a whole kind of rule whose calls wait: a resource has so many seats, each call takes one until it
// ends, and calls that find none wait in a queue. It is a model for queues of your own, and uses nothing but package
// rule: seats.go has the rule, and what the kind says of itself, room.go the state that all versions of a rule have in
// common, limiter.go a version.
//
// The kind isolation, which comes with Penstock, does the same and more, without a lock for calls that find a seat.
package seats

import (
	"cmp"
	"time"

	"github.com/penstock-go/penstock/rule"
)

// Rule gives a resource seats.
type Rule struct {
	// Name is unique among the rules of the kind. It defaults to Resource or Match.
	Name string

	// Resource is an exact name, Match a pattern of names; a rule has one of them. Except are names and patterns that
	// match, but that the rule is not for.
	Resource, Match string
	Except          rule.Strings

	// Shared gives all resources that match the same seats.
	Shared bool

	// Seats is how many calls are under way at once, from 1 to 100000.
	Seats int

	// MaxWait is how long a call waits for a seat, at most a minute. Defaults to 0: none waits. A change is for calls
	// that come later.
	MaxWait time.Duration

	// MaxQueue is how many calls wait at once, from 1 to 10000. Defaults to 100.
	MaxQueue int

	// Origin restricts the rule to the calls of one caller.
	Origin string

	// Shadow makes the rule count and decide, but refuse nothing.
	Shadow bool
}

const (
	maxSeats        = 100_000
	maxWait         = time.Minute
	maxQueue        = 10_000
	defaultMaxQueue = 100
)

// Kind returns the kind. Documents have its rules in a list "seats".
func Kind() *rule.Type[Rule] {
	return rule.Define(rule.Spec[Rule]{
		Kind: "seats", Phase: rule.PhaseConcurrency, Reason: rule.Overloaded, Common: common,
		Fields: []rule.Field[Rule]{
			rule.FieldOf("seats", func(r *Rule) *int { return &r.Seats }).
				Required("is missing: write how many calls may be under way").Says("calls under way at once"),
			rule.FieldOf("maxWait", func(r *Rule) *time.Duration { return &r.MaxWait }).
				Says("how long a call waits for a seat; 0: not at all"),
			rule.FieldOf("maxQueue", func(r *Rule) *int { return &r.MaxQueue }).
				NotZero("must be from 1 to 10000, or maxWait 0").Says("how many calls wait at once"),
		},
		Examples: []rule.Example[Rule]{{
			About:  "reports are heavy: four at once, and others wait",
			Rule:   Rule{Name: "reports", Resource: "reports:render", Seats: 4, MaxWait: 5 * time.Second, MaxQueue: 20},
			Fields: []string{"name", "resource", "seats", "maxWait", "maxQueue"},
		}},
		Defaults: func(r *Rule) { r.MaxQueue = cmp.Or(r.MaxQueue, defaultMaxQueue) },
		Validate: validate,
		New:      newLimiter,
		Adopt:    adopt,
		Gauges: []rule.Gauge{
			{Name: "taken", Help: "Seats that are taken."},
			{Name: "waiting", Help: "Calls that wait for a seat."},
		},
	})
}

func common(r *Rule) rule.Common {
	return rule.Common{
		Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Except: &r.Except, Shared: &r.Shared,
		Origin: &r.Origin, Shadow: &r.Shadow,
	}
}

func validate(r *Rule) []rule.Fault {
	var faults rule.Faults
	if !rule.Within(r.Seats, 1, maxSeats) {
		faults.Add("seats", "is %d: must be from 1 to %d", r.Seats, maxSeats)
	}
	if !rule.Within(r.MaxWait, 0, maxWait) {
		faults.Add("maxWait", "is %v: must be from 0s to %v", r.MaxWait, maxWait)
	}
	if !rule.Within(r.MaxQueue, 1, maxQueue) {
		faults.Add("maxQueue", "is %d: must be from 1 to %d", r.MaxQueue, maxQueue)
	}
	return faults
}
