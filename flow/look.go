package flow

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/stat"
)

// Glance is what a look at a window found, for a Take that follows at once.
type Glance struct {
	seen   stat.Seen
	bucket int64
}

// Look is [Window.Check] for a call that takes from the window when it has looked
// at others, too, with [Window.TakeSeen].
func (w *Window) Look(t *Terms, now clock.Instant, n int32) (Glance, Decision) {
	bucket := t.bucketOf(now)
	for {
		if w.terms.Load() == t {
			seen, outcome := w.counts.Look(bucket, n)
			if outcome != stat.NotOpen && w.terms.Load() == t { // see Take
				if outcome == stat.Full && !w.large.mayPass(n, w.counts.Room()) {
					if n > w.refused.Load() { // mostly it is noted
						w.noteRefused(t, n)
					}
					return Glance{}, Refused
				}
				return Glance{seen, bucket}, Passed
			}
		}
		if !w.settle(t, now) {
			return Glance{}, Outdated
		}
	}
}

// TakeSeen is [Window.Take] after a Look with the same arguments that said Passed.
// It is cheaper while nobody else has come in between.
func (w *Window) TakeSeen(t *Terms, now clock.Instant, n int32, g Glance) Decision {
	if w.counts.TakeSeen(g.bucket, n, g.seen) {
		if w.terms.Load() == t { // and was then: terms never come back
			return Passed
		}
		w.GiveBack(t, now, n)
	}
	return w.Take(t, now, n)
}

// held counts the calls that have taken from a window but may give back, because
// they have to ask another window first. Its upper half counts how often one began.
type held struct{ word atomic.Uint64 }

// Begin says that a call is about to take tokens that it may give back soon.
// [Window.End] is to follow.
func (w *Window) Begin() { w.held.word.Add(1<<32 + 1) }

// End says that the call keeps what it took, or has given it back.
func (w *Window) End() { w.held.word.Add(^uint64(0)) }

// ReallyFull says at now whether the window had no room for n tokens at an instant
// at which nobody held tokens between [Window.Begin] and [Window.End]; false when
// that cannot be told, or when there is room.
func (w *Window) ReallyFull(t *Terms, now clock.Instant, n int32) bool {
	before := w.held.word.Load()
	if before == 0 { // nobody ever did
		return true
	}
	return uint32(before) == 0 && w.Check(t, now, n) == Refused && w.held.word.Load() == before
}

// Leaves says whether what is taken at now may have left the window at a later
// instant.
func (t *Terms) Leaves(now, later clock.Instant) bool {
	return later >= t.bucketStart(t.bucketOf(now)).Add(t.spanLength())
}

// FullUntil returns when n tokens that the window has no room for at now can pass
// if nobody else comes, so that a call that has to wait anyway need not if it is
// refused in the end. It is not later than that, but may be earlier: now if it
// cannot be told, as that depends on how warm the resource will be.
func (w *Window) FullUntil(t *Terms, now clock.Instant, n int32) clock.Instant {
	if t.warmsUp() || w.terms.Load() != t {
		return now
	}
	var wait time.Duration
	if n == 1 && w.counts.Room() >= 0 {
		wait = time.Duration(w.wait.Load())
	} else {
		w.mu.Lock()
		wait = w.retryAfter(w.terms.Load(), n, w.counts.Room())
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
