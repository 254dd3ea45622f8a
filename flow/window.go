package flow

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/stat"
)

// Window enforces a rule with a window: a sliding one, or a fixed one, which is
// one of a single bucket. Its buckets never hold more than the limit, nor more than
// the ceiling of the present second but for what was left unused before: the fraction
// of a token, and what is saved for large calls. It is safe for concurrent use; taking,
// refusing, checking, counting and giving back are lock-free but for the first call of
// each bucket, and for large calls.
type Window struct {
	terms  atomic.Pointer[Terms] // those that counts was opened under
	counts *stat.Window

	held    held         // by calls that may give it back
	wait    atomic.Int64 // how long a token refused in the open bucket has to wait, nanoseconds
	refused atomic.Int32 // the largest call refused in it, tokens; see noteRefused
	large   largeCalls   // those that have to wait until more is saved up than the ceiling

	// Tokens that calls which wait in a queue will take, if all calls of the window are
	// of one resource.
	promised atomic.Int64

	mu       sync.Mutex // guards what follows, and opening and closing buckets
	cold     cold
	course   course
	credit   credit
	ceiling  float64 // of the open bucket, tokens per window
	whole    int64   // its whole tokens
	fraction float64 // and the rest
	counted  int64   // tokens of the open bucket that cold has been told of

	// Of a rule that has changed its shape:
	log          *passLog    // nil if there is nothing to remember
	restored     int64       // the bucket that was open when the window was last filled from the log
	restoredOpen int64       // tokens of that bucket that are in the log
	shaped       uint64      // the version of the terms that it was filled for
	before       predecessor // to take over from, with the first call; else nil
}

// NewWindow returns a window that nothing has passed yet, stone-cold if the
// terms warm up.
func NewWindow(t *Terms, now clock.Instant) *Window {
	bucket := t.bucketOf(now)
	w := &Window{counts: stat.NewWindow(t.span, bucket), cold: newCold(t, t.bucketStart(bucket))}
	w.credit = newCredit(w.ceilingOf(&w.cold, &w.course, t, bucket))
	w.terms.Store(t)
	w.noteRefusals(t)
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
				if n > 1 && w.takeSaved(t, bucket, n) {
					return Passed
				}
				if n > w.refused.Load() { // mostly it is noted
					w.noteRefused(t, n)
				}
				return Refused
			case outcome == stat.Taken:
				w.GiveBack(t, now, n)
			}
		}
		if !w.settle(t, now) {
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
				if outcome == stat.Full && !w.large.mayPass(n, w.counts.Room()) {
					w.noteRefused(t, n)
					return Refused
				}
				return Passed
			}
		}
		if !w.settle(t, now) {
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

// GiveBack returns n tokens that Take took at now under the given terms, also if
// the window has other buckets now. What has left the window since needs no return.
func (w *Window) GiveBack(t *Terms, now clock.Instant, n int32) {
	bucket := t.bucketOf(now)
	isLarge := n > 1 && int64(n) > w.large.above.Load() // what was saved for it is not for others
	if !isLarge && w.terms.Load() == t && w.counts.TryGiveBack(bucket, n) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	present := w.terms.Load()
	w.close(present)
	if t.version < w.shaped || !w.counts.GiveBack(bucket, n) {
		w.giveBackLogged(present, now, int64(n))
	} else {
		w.cold.pass(present, -int64(n), present.bucketStart(bucket))
		if bucket == w.counts.OpenBucket() {
			w.counted -= int64(n)
		}
		w.credit.refund(bucket, present.span, int64(n))
	}
	w.open(present, w.counts.OpenBucket())
}

// Adopt goes over to newer terms at once, rather than with the next call.
func (w *Window) Adopt(t *Terms, now clock.Instant) { w.settle(t, now) }

// RetryAfter returns how long it takes from now until n tokens that were refused
// can pass if nobody else comes; [Never] when they cannot under the rule. It is
// told in steps, so that refusals of the same moment are alike, and rather too long than too short by a step. n of 1 costs two loads.
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
