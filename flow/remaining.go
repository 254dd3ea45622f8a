package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// tokenSchedule is a pace for which it only matters how many tokens are ahead.
type tokenSchedule interface {
	turn(now clock.Instant, ahead int64, n int32) (turn clock.Instant, ok bool)

	// drained returns the pace as it will be when all waiting calls have passed, which
	// take so many tokens and of which the last passes at an instant.
	drained(now, last clock.Instant, tokens int64) tokenSchedule
}

// remainingOf returns how many calls of one token that come at now, behind those that
// wait, get a turn within maxWait, and how long it takes until more would, 0 if never.
func remainingOf(p tokenSchedule, l *line, now clock.Instant, maxWait time.Duration) (remaining int64, reset time.Duration) {
	ahead := l.tokens()
	for tooMany := int64(1) << 50; remaining < tooMany; { // more than pass in the longest of waits
		middle := (remaining + tooMany) / 2
		if turn, ok := p.turn(now, ahead+middle, 1); ok && turn.Sub(now) <= maxWait {
			remaining = middle + 1
		} else {
			tooMany = middle
		}
	}
	if l.head == nil {
		return remaining, resetOf(p, remaining, now, maxWait)
	}
	last, _ := p.turn(now, ahead-int64(l.tail.tokens), l.tail.tokens)
	return remaining, resetOf(p.drained(now, last, ahead), remaining, now, maxWait)
}

// resetOf returns how long it takes until more than so many calls get a turn, if nobody
// waits before them.
func resetOf(p tokenSchedule, remaining int64, now clock.Instant, maxWait time.Duration) time.Duration {
	turn, ok := p.turn(now, remaining, 1)
	if !ok {
		return 0
	}
	// Turns are whole nanoseconds. How they are rounded depends on the instant of asking.
	about := turn.Sub(now) - maxWait
	for reset := max(1, about-1); reset <= about+1; reset++ {
		then := now.Add(reset)
		if turn, _ := p.turn(then, remaining, 1); turn.Sub(then) <= maxWait {
			return reset
		}
	}
	return 0 // a bucket that is full by then
}
