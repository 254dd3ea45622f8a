package optional

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Balancer is a [rule.Settler] that knows what is left of the limit from which a call took.
type Balancer interface {
	rule.Settler

	// Balance returns how many tokens are left at now of what a call took from that passed at
	// start; below 0 if more were taken than the limit lets pass. known is false if that is not
	// known. It takes nothing and must not allocate.
	Balance(now, start clock.Instant, t rule.Ticket) (left int64, known bool)
}

// Recharger is a limiter of balances that are only recharged: nothing flows back by itself.
type Recharger interface {
	rule.Limiter

	// Recharge adds tokens to the balance that such a call is held against, or takes some off if the
	// number is below 0, however few are left; 0 changes nothing. done is called once, with what is left
	// then, below 0 if more was taken than there was, or with the reason why nothing was changed or that
	// is not known: by Recharge, or later by another goroutine, when the backend of a fleet has answered
	// or its timeout has passed. It must not block.
	Recharge(c rule.Call, tokens int64, done func(left int64, err error))
}

// ValueKeeper is a limiter that keeps a state for each value of what its rule looks at, which
// operators can look at and change. Its methods are not on the way of calls. The call has the
// value; without one they do nothing.
type ValueKeeper interface {
	rule.Limiter

	// ValueOf returns the state of the value of a call. It changes nothing.
	ValueOf(rule.Call) ValueState

	// ResetValue makes the value as new: it has used nothing and has no penalty. Calls under way
	// stay under way. The error says why that is not possible, and nothing has changed then.
	ResetValue(rule.Call) error

	// LiftPenalty ends the penalty of the value, whose refusals are counted anew. What the value
	// has used stays used.
	LiftPenalty(rule.Call) error
}

// ValueState is the state of a value at an instant.
type ValueState struct {
	Value string // for people, perhaps cut or masked

	Quota    *rule.Quota   // what is left of its limit; nil if that is not known, or calls under way are limited
	Used     float64       // tokens that are missing to be as new; NaN if that is not known
	InFlight int64         // calls under way, of a rule that limits them
	Places   int64         // how many may be under way, of such a rule; else 0
	Penalty  clock.Instant // when its penalty ends; 0 if it has none

	// Instance says that the limit is one of the whole fleet, and that this is what the instance
	// knows of it.
	Instance bool
}
