package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// tokenSchedule is a pace at which it only counts how many tokens are ahead.
type tokenSchedule interface {
	turn(now clock.Instant, ahead int64, n int32) (turn clock.Instant, ok bool)

	// drained returns the pace as it will be when the last of a line has gone, which
	// takes so many tokens and goes at an instant.
	drained(now, last clock.Instant, tokens int64) tokenSchedule
}

// remainingOf returns how many calls of one token that come at now, behind a line, get a
// turn within maxWait, and how long it takes until that is more, 0 if it never is.
func remainingOf(p tokenSchedule, l *line, now clock.Instant, maxWait time.Duration) (room int64, reset time.Duration) {
	ahead := l.tokens()
	for tooMany := int64(1) << 50; room < tooMany; { // more than pass in the longest of waits
		middle := (room + tooMany) / 2
		if turn, ok := p.turn(now, ahead+middle, 1); ok && turn.Sub(now) <= maxWait {
			room = middle + 1
		} else {
			tooMany = middle
		}
	}
	if l.head == nil {
		return room, resetOf(p, room, now, maxWait)
	}
	last, _ := p.turn(now, ahead-int64(l.tail.tokens), l.tail.tokens)
	return room, resetOf(p.drained(now, last, ahead), room, now, maxWait)
}

// resetOf returns how long it takes until more than so many calls get a turn, if
// nobody is before them.
func resetOf(p tokenSchedule, room int64, now clock.Instant, maxWait time.Duration) time.Duration {
	turn, ok := p.turn(now, room, 1)
	if !ok {
		return 0
	}
	// Turns are whole nanoseconds; what they are rounded by depends on when it is asked.
	about := turn.Sub(now) - maxWait
	for reset := max(1, about-1); reset <= about+1; reset++ {
		then := now.Add(reset)
		if turn, _ := p.turn(then, room, 1); turn.Sub(then) <= maxWait {
			return reset
		}
	}
	return 0 // a bucket that is full by then
}
