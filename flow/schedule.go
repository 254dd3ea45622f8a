package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// schedule decides when tokens may pass, for a queue, whose mutex guards it.
type schedule interface {
	// next returns when n tokens that come at now may pass if no call waits before them:
	// now or later. It returns false if they never can.
	next(now clock.Instant, n int32) (turn clock.Instant, ok bool)

	// nextBehind is next for a call that comes behind the first that waits, and behind
	// others which take so many tokens.
	nextBehind(head *waiter, between int64, now clock.Instant, n int32) (turn clock.Instant, ok bool)

	// nextInstead is next for a call that comes while another one waits and would pass
	// before it. It plans nothing.
	nextInstead(now clock.Instant, n int32) (turn clock.Instant, ok bool)

	// delay notes that a call of n tokens that came at now can pass no earlier than at
	// a later instant: it waits for that, or is refused.
	delay(now, turn clock.Instant, n int32)

	// grant takes n tokens at now for a call that passes then, or at a later instant.
	grant(now, turn clock.Instant, n int32) turn

	// takeBack takes back a turn that was not used. It returns whether calls
	// that wait may pass earlier for it.
	takeBack(ticket turn) bool

	// adopt returns the schedule of a newer version of the rule, which goes on from
	// this one.
	adopt(t *compiledRule, now clock.Instant) schedule

	// resume makes a new schedule go on at now as if it had let everything in the log
	// pass.
	resume(log *passLog, now clock.Instant)

	// recent returns what is known of the calls that passed, as tokens that passed at one
	// instant; 0 if none of them matter any more.
	recent(now clock.Instant) (at clock.Instant, tokens int64)

	// status returns the effective limit at now, how many calls of one token that came
	// behind those that wait would pass within maxWait, and how long it takes until one
	// more would, 0 if never.
	status(l *waiterList, now clock.Instant, maxWait time.Duration) (limit float64, remaining int64, reset time.Duration)

	// isNew says whether a schedule made at now would decide alike on calls that take
	// no more than the limit.
	isNew(now clock.Instant) bool

	// copyAt returns a copy, which is cold at now if the rule warms up.
	copyAt(now clock.Instant) schedule
}

// atOnce is how long, in nanoseconds, the tokens that a call lacks when it passes may
// take to flow in. Instants are whole nanoseconds; the part of one that is lacking is
// still owed.
const atOnce = 0.999

// after returns the instant that is so many nanoseconds later than another, rounded down
// so that a call lacks less than atOnce then. The little that is added makes up for sums
// of fractions that fall short of whole numbers.
func after(since clock.Instant, nanoseconds float64) clock.Instant {
	return since.Add(time.Duration(min(nanoseconds+0.01, float64(forever))))
}
