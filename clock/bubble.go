package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

// bubbles shift the time of a clock while it is used within testing/synctest, in another bubble than
// that in which it was made. The system says there that it is the year 2000. To the clock, time goes on
// from what it was outside as it passes in the bubble, and afterwards from what it was there: it never
// goes back, and does not stand still, whether it is used inside and outside in turn, or at once. That
// of a clock that was made in a bubble goes on in the same way outside, and in other bubbles. The zero value
// is for a clock that was made outside, and has seen no bubble.
type bubbles struct {
	entered atomic.Bool // the time is, or was, that of a bubble, and may be ahead because of that

	// outside is how much must have passed, as the system says, for the time to be that outside; 0 for a
	// clock that was made outside. It never changes.
	outside time.Duration

	mu     sync.Mutex // guards what follows
	inside bool       // when last asked
	shift  time.Duration
	last   Instant // that was returned
}

// madeNow returns the bubbles of a clock that is made at this time, as the system says.
func madeNow(epoch Instant) *bubbles {
	b := new(bubbles)
	if ahead := wallTime().Sub(epoch); ahead > bubbleYears {
		b.outside, b.inside, b.last = ahead/2, true, epoch
		b.entered.Store(true)
	}
	return b
}

// bubbleYears is by how much the time in a bubble is surely behind the wall clock.
const bubbleYears = 10 * 365 * 24 * time.Hour

// now returns the time of a clock of which so much has passed since its epoch, as the system says: a
// negative time in a bubble.
func (b *bubbles) now(epoch Instant, passed time.Duration) Instant {
	b.mu.Lock()
	defer b.mu.Unlock()
	inside, at, wasMadeOutside := passed < b.outside, epoch.Add(passed), b.outside == 0
	if inside && !b.inside {
		if b.last = max(b.last, epoch); wasMadeOutside {
			b.last = max(b.last, wallTime())
		}
		b.entered.Store(true)
	}
	if inside != b.inside {
		b.shift = b.last.Sub(at)
	}
	if !inside && wasMadeOutside {
		b.shift = max(0, b.shift)
	}
	b.inside = inside
	if at = at.Add(b.shift); at < b.last { // another bubble
		b.shift += b.last.Sub(at)
		at = b.last
	}
	b.last = at
	if !inside && b.shift == 0 && wasMadeOutside {
		b.entered.Store(false)
	}
	return at
}
