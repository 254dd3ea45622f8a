package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// tokenPace is a pace at which it only counts how many tokens are ahead.
type tokenPace interface {
	turn(now clock.Instant, ahead int64, n int32) (turn clock.Instant, ok bool)
}

// roomOf returns how many calls of one token that come at now, with so many
// tokens ahead of them, get a turn within maxWait, and how long it takes until
// that is one more, 0 if it never is.
func roomOf(p tokenPace, ahead int64, now clock.Instant, maxWait time.Duration) (room int64, reset time.Duration) {
	missing := func(now clock.Instant, before int64) (time.Duration, bool) {
		turn, ok := p.turn(now, ahead+before, 1)
		return turn.Sub(now) - maxWait, ok
	}
	for tooMany := int64(1) << 50; room < tooMany; { // more than pass in the longest of waits
		middle := (room + tooMany) / 2
		if wait, ok := missing(now, middle); ok && wait <= 0 {
			room = middle + 1
		} else {
			tooMany = middle
		}
	}
	reset, ok := missing(now, room)
	if !ok {
		return 0, 0
	}
	if wait, _ := missing(now.Add(reset), room); wait > 0 {
		return room, 0 // a bucket that is full by then
	}
	return room, reset
}
