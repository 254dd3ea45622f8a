package flow

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/stat"
)

// Window enforces a rule with a window: a sliding one, or a fixed one, which is
// one of a single bucket. Its buckets never hold more than the ceiling of the
// present second. It is safe for concurrent use; taking, refusing, checking,
// counting and giving back are lock-free but for the first call of each bucket.
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
	bucket := t.bucketOf(now)
	w := &Window{counts: stat.NewWindow(t.span, bucket), cold: newCold(t, t.bucketStart(bucket))}
	w.credit = newCredit(w.ceilingOf(&w.cold, &w.course, t, bucket))
	w.terms.Store(t)
	w.open(t, bucket)
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

// Check is Take without taking anything: Passed tells that there is room for n
// tokens.
func (w *Window) Check(t *Terms, now clock.Instant, n int32) Decision {
	bucket := t.bucketOf(now)
	for {
		if w.terms.Load() == t {
			outcome := w.counts.Check(bucket, n)
			if outcome != stat.NotOpen && w.terms.Load() == t { // see Take
				if outcome == stat.Full {
					return Refused
				}
				return Passed
			}
		}
		if !w.settle(t, bucket) {
			return Outdated
		}
	}
}

// Count counts n tokens that passed at now without having been taken here,
// whatever room there is. It never fails: what comes too late for its bucket is
// counted in the present one, also when it brings outdated terms.
func (w *Window) Count(t *Terms, now clock.Instant, n int32) {
	if w.terms.Load() == t && w.counts.TryCount(t.bucketOf(now), n) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	present := w.terms.Load()
	w.roll(present, present.bucketOf(now))
	w.counts.TryCount(w.counts.OpenBucket(), n)
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

// RetryAfter returns how long it takes from now until n tokens that were refused
// can pass if nobody else comes; 0 when they never can under the present
// ceiling. It is told in steps, so that refusals of the same moment are alike, and
// rather too long than too short by a step. n of 1 costs two loads.
func (w *Window) RetryAfter(now clock.Instant, n int32) time.Duration {
	if n == 1 && w.counts.Room() >= 0 {
		return w.terms.Load().fromNow(time.Duration(w.wait.Load()), now)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.terms.Load()
	return t.fromNow(w.retryAfter(t, n, w.counts.Room()), now)
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
