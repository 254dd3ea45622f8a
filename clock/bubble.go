package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

// bubbles shift the time of a clock while it is used within testing/synctest, in another bubble than
// that in which it was made. The system says there that it is the year 2000. To the clock, time goes on
// from what it was outside as it passes in the bubble, and afterwards from what it was there: it never
// goes back, and does not stand still, whether it is used inside and outside in turn, or at once. The
// zero value has seen no bubble.
type bubbles struct {
	entered atomic.Bool // the time is, or was, that of a bubble, and may be ahead because of that

	mu     sync.Mutex // guards what follows
	inside bool       // when last asked
	shift  time.Duration
	last   Instant // that was returned
}

// now returns the time of a clock of which so much has passed since its epoch, as the system says: a
// negative time in a bubble.
func (b *bubbles) now(epoch Instant, passed time.Duration) Instant {
	b.mu.Lock()
	defer b.mu.Unlock()
	inside, at := passed < 0, epoch.Add(passed)
	if inside && !b.inside {
		b.last = max(b.last, wallTime(), epoch)
		b.entered.Store(true)
	}
	if inside != b.inside {
		b.shift = b.last.Sub(at)
	}
	if !inside {
		b.shift = max(0, b.shift)
	}
	b.inside = inside
	if at = at.Add(b.shift); at < b.last { // another bubble
		b.shift += b.last.Sub(at)
		at = b.last
	}
	b.last = at
	if !inside && b.shift == 0 {
		b.entered.Store(false)
	}
	return at
}
