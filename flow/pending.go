package flow

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// pendingCalls counts the calls that have taken tokens of a window but may give them
// back, because they have to ask another window first. The upper half of the word counts
// how many there have been.
type pendingCalls struct{ word atomic.Uint64 }

// beginPending notes that a call is about to take tokens that it may give back.
// [Window.endPending] must follow.
func (w *Window) beginPending() { w.pending.word.Add(1<<32 + 1) }

// endPending notes that the call keeps what it took, or has given it back.
func (w *Window) endPending() { w.pending.word.Add(^uint64(0)) }

// reallyFull says whether fewer than n tokens remained at an instant at which no call
// was pending; false when that is not known, or when n tokens remain at now.
func (w *Window) reallyFull(r *Compiled, now clock.Instant, n int32) bool {
	before := w.pending.word.Load()
	if before == 0 { // no call ever did
		return true
	}
	return uint32(before) == 0 && w.Check(r, now, n) == rule.Block && w.pending.word.Load() == before
}

// leaves says whether what is taken at now may have left the window at a later
// instant.
func (r *Compiled) leaves(now, later clock.Instant) bool {
	return later >= r.bucketStart(r.bucketOf(now)).Add(r.spanLength())
}

// fullUntil returns when n tokens can pass that exceed what remains at now, if no other
// call comes. A call that has to wait anyway need not wait if it is refused in the end.
// The instant is never too late, but may be too early: it is now if the rule warms up or
// follows a signal.
func (w *Window) fullUntil(r *Compiled, now clock.Instant, n int32) clock.Instant {
	if r.warmsUp() || r.follower != nil || w.compiled.Load() != r {
		return now
	}
	var wait time.Duration
	if n == 1 && w.counts.Remaining() >= 0 {
		wait = time.Duration(w.wait.Load())
	} else {
		w.mu.Lock()
		wait = w.retryAfter(w.compiled.Load(), n, w.counts.Remaining())
		w.mu.Unlock()
	}
	if wait == Never {
		return noDeadline
	}
	if r.rule.Limit != math.Trunc(r.rule.Limit) && r.rule.Limit > 1 {
		wait = min(wait, r.bucket) // a saved token may come before others leave
	}
	return r.bucketStart(r.bucketOf(now)).Add(wait)
}
