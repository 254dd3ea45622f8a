package flow

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/stat"
)

// Window enforces a rule of control [Reject]: a sliding window whose buckets
// never hold more than the ceiling of the present second. It is safe for
// concurrent use; taking, refusing and giving back are lock-free but for the
// first call of each bucket.
type Window struct {
	terms  atomic.Pointer[Terms] // those that counts was opened under
	counts *stat.Window

	wait atomic.Int64 // how long a token refused in the open bucket has to wait, nanoseconds

	mu       sync.Mutex // guards what follows, and opening and closing buckets
	cold     cold
	course   course
	credit   credit
	ceiling  float64 // of the open bucket, tokens per window
	whole    int64   // its whole tokens
	fraction float64 // and the rest
	counted  int64   // tokens of the open bucket that cold has been told of
}

// NewWindow returns a window that nothing has passed yet, stone-cold if the
// terms warm up.
func NewWindow(t *Terms, now clock.Instant) *Window {
	w := &Window{counts: stat.NewWindow(t.span, t.bucketOf(now)), cold: newCold(t, now)}
	w.credit = newCredit(w.ceilingOf(&w.cold, &w.course, t, t.bucketOf(now)), t.warmsUp())
	w.terms.Store(t)
	w.open(t, t.bucketOf(now))
	return w
}

// Take takes n tokens at now under the given terms: Passed, Refused or
// Outdated.
func (w *Window) Take(t *Terms, now clock.Instant, n int32) Decision {
	bucket := t.bucketOf(now)
	for {
		if w.terms.Load() == t {
			outcome := w.counts.Take(bucket, n)
			// Terms never come back. Those that are still in force now were so
			// when the outcome was found.
			switch still := w.terms.Load() == t; {
			case outcome == stat.Taken && still:
				return Passed
			case outcome == stat.Full && still:
				return Refused
			case outcome == stat.Taken:
				w.GiveBack(t, now, n)
			}
		}
		if !w.settle(t, bucket) {
			return Outdated
		}
	}
}

// GiveBack returns n tokens that Take took at now under the given terms. What
// has left the window since needs no return; nor is anything returned if the
// window has other buckets now: then the tokens leave with it.
func (w *Window) GiveBack(t *Terms, now clock.Instant, n int32) {
	bucket := t.bucketOf(now)
	if w.terms.Load() == t && w.counts.TryGiveBack(bucket, n) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	present := w.terms.Load()
	if !present.sameBuckets(t) {
		return
	}
	w.close(present)
	if w.counts.GiveBack(bucket, n) {
		w.cold.pass(present, -int64(n), present.bucketStart(bucket))
		if bucket == w.counts.OpenBucket() {
			w.counted -= int64(n)
		}
		w.credit.refund(bucket, present.span)
	}
	w.open(present, w.counts.OpenBucket())
}

// Adopt goes over to newer terms at once, rather than with the next call.
func (w *Window) Adopt(t *Terms, now clock.Instant) { w.settle(t, t.bucketOf(now)) }

// RetryAfter returns how long it takes, counted from the start of the present
// bucket, until n tokens that were refused can pass if nobody else comes; 0 when
// they never can under the present ceiling. n of 1 costs one load.
func (w *Window) RetryAfter(n int32) time.Duration {
	if n == 1 {
		return time.Duration(w.wait.Load())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.retryAfter(w.terms.Load(), n, w.counts.Room())
}

// Opened returns when the present bucket began: a call that brought an earlier
// instant is Outdated.
func (w *Window) Opened() clock.Instant {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.terms.Load().bucketStart(w.counts.OpenBucket())
}

// Status returns the ceiling in force at now, in tokens per window, how many
// tokens can still be taken, and how long it takes until there will be more, 0
// if the window is empty. It changes nothing.
func (w *Window) Status(now clock.Instant) (ceiling float64, room int64, reset time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.terms.Load()
	bucket := max(t.bucketOf(now), w.counts.OpenBucket())
	if leaves, ok := w.counts.Leaves(bucket); ok {
		reset = t.bucketStart(leaves).Sub(now)
	}
	if bucket == w.counts.OpenBucket() {
		return w.ceiling, max(0, w.counts.Room()), reset
	}
	cold, course := w.cold, w.course.clone() // to look ahead with
	cold.pass(t, w.counts.Taken()-w.counted, t.bucketStart(w.counts.OpenBucket()))
	ceiling = w.ceilingOf(&cold, &course, t, bucket)
	whole, fraction := split(ceiling)
	return ceiling, max(0, whole+w.credit.held(fraction, bucket, t.span)-w.counts.Held(bucket)), reset
}

// settle makes the window ready for a call in a bucket under given terms. It
// returns false if the window is ahead of them.
func (w *Window) settle(t *Terms, bucket int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if present := w.terms.Load(); present != t {
		if t.version < present.version {
			return false
		}
		w.adopt(present, t, bucket)
	}
	if bucket <= w.counts.OpenBucket() {
		return bucket == w.counts.OpenBucket()
	}
	w.close(t)
	w.open(t, bucket)
	return true
}

// adopt goes over from one set of terms to another, keeping what is counted.
func (w *Window) adopt(from, to *Terms, bucket int64) {
	w.close(from)
	opened := w.counts.OpenBucket()
	if !from.sameBuckets(to) {
		// A token counts in the new bucket that the end of its old one falls
		// in: it leaves the window no earlier than it would have.
		opened = max(bucket, to.bucketOf(from.bucketStart(opened)))
		w.counts.Resize(to.span, opened, func(old int64) int64 {
			return to.bucketOf(from.bucketEnd(old))
		})
		w.counted = w.counts.Close()
		w.credit.renumber(func(old int64) int64 { return min(to.bucketOf(from.bucketEnd(old)), opened) })
	}
	w.cold.adopt(from, to, to.bucketStart(opened))
	w.course.adopt(from, to, opened)
	w.terms.Store(to)
	w.open(to, opened)
}

// close shuts the open bucket and accounts for what was taken in it.
func (w *Window) close(t *Terms) {
	taken := w.counts.Close()
	bucket := w.counts.OpenBucket()
	w.cold.pass(t, taken-w.counted, t.bucketStart(bucket))
	w.counted = taken
	if w.credit.held(w.fraction, bucket, t.span) == 0 && w.credit.extra(w.fraction) == 1 &&
		taken > 0 && w.counts.Held(bucket) > w.whole {
		w.credit.spend(bucket)
	}
}

// open settles what a bucket has room for and opens it.
func (w *Window) open(t *Terms, bucket int64) {
	passed := bucket - w.counts.OpenBucket()
	if passed > 0 {
		w.counted = 0
	}
	w.ceiling = w.ceilingOf(&w.cold, &w.course, t, bucket)
	w.whole, w.fraction = split(w.ceiling)
	w.credit.earn(w.fraction, passed, t.span)
	held := w.credit.held(w.fraction, bucket, t.span)
	w.counts.Open(bucket, w.whole+max(held, w.credit.extra(w.fraction)))
	// Who is refused later finds no room, whatever there is now.
	w.wait.Store(int64(w.retryAfter(t, 1, min(0, w.counts.Room()))))
}

// ceilingOf returns the ceiling of a bucket, the open one or a later one, in
// tokens per window: that of the step in which the bucket begins.
func (w *Window) ceilingOf(cold *cold, course *course, t *Terms, bucket int64) float64 {
	ceiling := cold.ceilingOfWindow(t, t.bucketStart(bucket), func(stepStart clock.Instant) float64 {
		return course.atLast(w.counts.Held(max(w.counts.OpenBucket(), t.bucketOf(stepStart)-1)))
	})
	return course.follow(t, bucket, ceiling)
}

func (w *Window) retryAfter(t *Terms, n int32, room int64) time.Duration {
	var buckets int64
	switch missing := int64(n) - w.whole; {
	case missing <= 0:
		buckets = w.counts.FreeIn(n, room, w.credit.spent)
	case missing > 1 || w.fraction < roundingError:
		return 0
	default: // all the whole tokens and a saved one
		if int64(n)-1 > room {
			buckets = w.counts.FreeIn(n-1, room, w.credit.spent)
		}
		buckets = max(buckets, w.credit.earnedIn(w.fraction, w.counts.OpenBucket(), t.span))
	}
	return time.Duration(min(buckets, int64(forever/t.bucket))) * t.bucket
}

// sameBuckets says whether windows under either terms have the same buckets.
func (t *Terms) sameBuckets(other *Terms) bool {
	return t.bucket == other.bucket && t.span == other.span
}

func (t *Terms) bucketOf(now clock.Instant) int64 { return int64(now) / int64(t.bucket) }

func (t *Terms) bucketStart(bucket int64) clock.Instant {
	return clock.Instant(bucket * int64(t.bucket))
}

// bucketEnd returns the last instant of a bucket.
func (t *Terms) bucketEnd(bucket int64) clock.Instant { return t.bucketStart(bucket+1) - 1 }
