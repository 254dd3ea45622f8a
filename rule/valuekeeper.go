package rule

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// ValueState is the state of a value at an instant.
type ValueState struct {
	Value string // for people, perhaps cut or masked

	Quota    *Quota        // what is left of its limit; nil if that is not known, or calls under way are limited
	Used     float64       // tokens that are missing to be as new; NaN if that is not known
	InFlight int64         // calls under way, of a rule that limits them
	Places   int64         // how many may be under way, of such a rule; else 0
	Penalty  clock.Instant // when its penalty ends; 0 if it has none

	// Instance says that the limit is one of the whole fleet, and that this is what the instance
	// knows of it.
	Instance bool
}

// PenaltyLeft returns how long the value is refused still; 0 if it is not.
func (s ValueState) PenaltyLeft(now clock.Instant) time.Duration {
	if s.Penalty == 0 {
		return 0
	}
	return max(0, s.Penalty.Sub(now))
}
