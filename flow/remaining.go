package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// tokenSchedule is a schedule for which it only matters how many tokens are ahead of a
// call.
type tokenSchedule interface {
	passTime(now clock.Instant, ahead int64, n int32) (turn clock.Instant, ok bool)

	// drained returns the schedule as it will be when all waiting calls have passed,
	// which take so many tokens and of which the last passes at an instant.
	drained(now, last clock.Instant, tokens int64) tokenSchedule
}

// remainingOf returns how many calls of one token that come at now, behind those that
// wait, pass within maxWait, and how long it takes until more would, 0 if never.
func remainingOf(p tokenSchedule, waiters *waiterList, now clock.Instant, maxWait time.Duration) (remaining int64, reset time.Duration) {
	ahead := waiters.tokens()
	for tooMany := int64(1) << 50; remaining < tooMany; { // more than pass in the longest of waits
		middle := (remaining + tooMany) / 2
		if passAt, ok := p.passTime(now, ahead+middle, 1); ok && passAt.Sub(now) <= maxWait {
			remaining = middle + 1
		} else {
			tooMany = middle
		}
	}
	if waiters.head == nil {
		return remaining, resetOf(p, remaining, now, maxWait)
	}
	tail := waiters.last()
	last, _ := p.passTime(now, ahead-int64(tail.tokens), tail.tokens)
	return remaining, resetOf(p.drained(now, last, ahead), remaining, now, maxWait)
}

// resetOf returns how long it takes until more than so many calls pass within maxWait,
// if no call waits before them.
func resetOf(p tokenSchedule, remaining int64, now clock.Instant, maxWait time.Duration) time.Duration {
	passAt, ok := p.passTime(now, remaining, 1)
	if !ok {
		return 0
	}
	// Calls pass at whole nanoseconds. How they are rounded depends on the instant of asking.
	about := passAt.Sub(now) - maxWait
	for reset := max(1, about-1); reset <= about+1; reset++ {
		then := now.Add(reset)
		if passAt, _ := p.passTime(then, remaining, 1); passAt.Sub(then) <= maxWait {
			return reset
		}
	}
	return 0 // a bucket that is full by then
}
