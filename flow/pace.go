package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// pace says when tokens may go, for a queue, whose mutex guards it.
type pace interface {
	// next returns when n tokens that come at now may go if nobody is before
	// them: now or later. It returns false if they never can.
	next(now clock.Instant, n int32) (turn clock.Instant, ok bool)

	// behind is next for those who come behind a line that is not empty.
	behind(l *line, now clock.Instant, n int32) (turn clock.Instant, ok bool)

	// delay notes that n tokens that came at now have a later turn, for which their
	// call waits or because of which it is refused.
	delay(now, turn clock.Instant, n int32)

	// grant takes n tokens at now for a turn, which may be a later one.
	grant(now, turn clock.Instant, n int32) Ticket

	// takeBack returns a turn that was not used. It says whether those who wait
	// may move up.
	takeBack(ticket Ticket) bool

	// adopt returns the pace under newer terms, which goes on where this one is.
	adopt(t *Terms, now clock.Instant) pace

	// resume makes a pace that nothing has gone by yet go on at now as if it had
	// let all that the log remembers go.
	resume(log *passLog, now clock.Instant)

	// recent returns what the pace knows of those that went, as tokens that all
	// went at one instant; 0 if nothing of them matters any more.
	recent(now clock.Instant) (at clock.Instant, tokens int64)

	// status returns the ceiling in force at now, how many calls of one token
	// could come behind the line and get a turn within maxWait, and how long it
	// takes until that is one more, 0 if it never is.
	status(l *line, now clock.Instant, maxWait time.Duration) (ceiling float64, room int64, reset time.Duration)

	// isNew says whether a pace made at now would be the same, for calls that take
	// no more than the limit.
	isNew(now clock.Instant) bool

	// copyAt returns a copy, which is stone-cold at now if the terms warm up.
	copyAt(now clock.Instant) pace
}

// newPace returns the pace of a queue that nothing has gone through yet.
func newPace(t *Terms, now clock.Instant) pace {
	switch {
	case t.rule.Limiter() == ThrottleLimiter:
		return &leakyBucket{terms: t, warmUp: newWarmUpState(t, now), last: rounded{at: longAgo}}
	case t.warmsUp():
		return newWarmingBucket(t, now, 1)
	}
	return newTokenBucket(t, now, 1)
}

// atOnce is how long, in nanoseconds, the tokens may take to flow in that a call
// lacks when it passes. Instants are whole nanoseconds; what is owed of one is
// not forgotten but comes off the next.
const atOnce = 0.999

// after returns the instant that is so many nanoseconds later than another,
// rounded down so that a call lacks less than atOnce then. The remainder that is
// rounded away allows for what sums of fractions fall short of whole numbers.
func after(since clock.Instant, nanoseconds float64) clock.Instant {
	return since.Add(time.Duration(min(nanoseconds+0.01, float64(forever))))
}
