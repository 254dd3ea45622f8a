package flow

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// held counts the calls that have taken from a window but may give back, because
// they have to ask another window first. Its upper half counts how often one began.
type held struct{ word atomic.Uint64 }

// begin says that a call is about to take tokens that it may give back soon.
// [Window.end] is to follow.
func (w *Window) begin() { w.held.word.Add(1<<32 + 1) }

// end says that the call keeps what it took, or has given it back.
func (w *Window) end() { w.held.word.Add(^uint64(0)) }

// reallyFull says at now whether the window had no room for n tokens at an instant
// at which nobody held tokens between [Window.begin] and [Window.end]; false when
// that cannot be told, or when there is room.
func (w *Window) reallyFull(t *Terms, now clock.Instant, n int32) bool {
	before := w.held.word.Load()
	if before == 0 { // nobody ever did
		return true
	}
	return uint32(before) == 0 && w.Check(t, now, n) == Refused && w.held.word.Load() == before
}

// leaves says whether what is taken at now may have left the window at a later
// instant.
func (t *Terms) leaves(now, later clock.Instant) bool {
	return later >= t.bucketStart(t.bucketOf(now)).Add(t.spanLength())
}

// fullUntil returns when n tokens that the window has no room for at now can pass
// if nobody else comes, so that a call that has to wait anyway need not if it is
// refused in the end. It is not later than that, but may be earlier: now if it
// cannot be told, as that depends on how warm the resource will be.
func (w *Window) fullUntil(t *Terms, now clock.Instant, n int32) clock.Instant {
	if t.warmsUp() || w.terms.Load() != t {
		return now
	}
	var wait time.Duration
	if n == 1 && w.counts.Remaining() >= 0 {
		wait = time.Duration(w.wait.Load())
	} else {
		w.mu.Lock()
		wait = w.retryAfter(w.terms.Load(), n, w.counts.Remaining())
		w.mu.Unlock()
	}
	if wait == Never {
		return longAfter
	}
	if t.rule.Limit != math.Trunc(t.rule.Limit) && t.rule.Limit > 1 {
		wait = min(wait, t.bucket) // a saved token may come before others leave
	}
	return t.bucketStart(t.bucketOf(now)).Add(wait)
}
