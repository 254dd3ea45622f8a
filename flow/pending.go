package flow

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// pendingCalls counts the calls that have taken from a window but may give back, because
// they have to ask another window first. Its upper half counts how often one began.
type pendingCalls struct{ word atomic.Uint64 }

// beginPending says that a call is about to take tokens that it may give back soon.
// [Window.end] is to follow.
func (w *Window) beginPending() { w.pending.word.Add(1<<32 + 1) }

// endPending says that the call keeps what it took, or has given it back.
func (w *Window) endPending() { w.pending.word.Add(^uint64(0)) }

// reallyFull says at now whether the window had no room for n tokens at an instant
// at which nobody held tokens between [Window.begin] and [Window.end]; false when
// that cannot be told, or when there is room.
func (w *Window) reallyFull(r *Compiled, now clock.Instant, n int32) bool {
	before := w.pending.word.Load()
	if before == 0 { // nobody ever did
		return true
	}
	return uint32(before) == 0 && w.Check(r, now, n) == rule.Block && w.pending.word.Load() == before
}

// leaves says whether what is taken at now may have left the window at a later
// instant.
func (r *Compiled) leaves(now, later clock.Instant) bool {
	return later >= r.bucketStart(r.bucketOf(now)).Add(r.spanLength())
}

// fullUntil returns when n tokens that the window has no room for at now can pass
// if nobody else comes, so that a call that has to wait anyway need not if it is
// refused in the end. It is not later than that, but may be earlier: now if it
// cannot be told, as that depends on how warm the resource will be.
func (w *Window) fullUntil(r *Compiled, now clock.Instant, n int32) clock.Instant {
	if r.warmsUp() || w.compiled.Load() != r {
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
		return longAfter
	}
	if r.rule.Limit != math.Trunc(r.rule.Limit) && r.rule.Limit > 1 {
		wait = min(wait, r.bucket) // a saved token may come before others leave
	}
	return r.bucketStart(r.bucketOf(now)).Add(wait)
}
