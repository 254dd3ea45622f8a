package flow

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/internal/warnonce"
	"github.com/penstock-go/penstock/rule"
)

// window enforces a rule with a sliding window, or with a fixed one, which is a window
// of a single bucket. Its buckets never hold more than the limit. While the rule warms
// up they hold more than the effective limit only by what was left unused before: the
// fraction of a token, and what is saved for large calls.
//
// A window is safe for concurrent use. Taking, refusing, checking, counting and giving
// back are lock-free, except for the first call of each bucket and for large calls.
type window struct {
	compiled atomic.Pointer[compiledRule] // those that counts was opened under
	counts   leap.Window

	wait      atomic.Int64 // how long a token refused in the open bucket has to wait, ns
	overdrawn atomic.Int64 // what remained when the bucket was opened if that is below zero
	refused   atomic.Int32 // the largest call refused in it, tokens; see noteRefused
	large     largeCalls   // see there
	warned    warnonce.Latest

	mu      sync.Mutex     // guards what follows, and opening and closing buckets
	warming *windowWarming // nil unless the rule warms up
	carry   fractionCarry
	limit   float64 // the effective limit of the open bucket, tokens per window
	counted int64   // tokens of the open bucket that warming has counted

	// Of a rule that has changed its shape:
	log    *passLog    // nil if there is nothing to remember
	shaped uint64      // the version of the rule that it was last filled for from the log
	before predecessor // to take over from, with the first call; else nil
}

// newWindow returns an empty window, cold if the rule warms up.
func newWindow(r *compiledRule, now clock.Instant) *window {
	r = r.inForce()
	bucket := r.bucketOf(now)
	w := &window{warming: newWindowWarming(r, r.bucketStart(bucket))}
	w.counts.Resize(int(r.span), bucket)
	w.carry = newFractionCarry(w.warming.limitOf(r, bucket))
	w.compiled.Store(r)
	w.noteRefusals(r)
	w.open(r, bucket)
	return w
}

// whole returns the whole tokens of the effective limit of the open bucket.
func (w *window) whole() int64 {
	whole, _ := split(w.limit)
	return whole
}

// fraction returns the fraction of a token of that limit.
func (w *window) fraction() float64 {
	_, fraction := split(w.limit)
	return fraction
}

// Take takes n tokens at now under a version of the rule. Pass: they are taken. Block:
// fewer remain. Stale: there is a newer version of the rule, or the window has seen an
// instant of a later bucket; nothing is taken.
func (w *window) Take(r *compiledRule, now clock.Instant, n int32) rule.Decision {
	r = r.inForce()
	bucket := r.bucketOf(now)
	for {
		if w.compiled.Load() == r {
			outcome := w.counts.Take(bucket, n)
			// A version never comes back. One that is still in force now was so
			// when the outcome was found.
			switch still := w.compiled.Load() == r; {
			case outcome == leap.Taken && still:
				return rule.Pass
			case outcome == leap.Full && still:
				if n > 1 && w.takeSaved(r, bucket, n) {
					return rule.Pass
				}
				if n > w.refused.Load() { // mostly it is noted
					w.noteRefused(r, n)
				}
				return rule.Block
			case outcome == leap.Taken:
				w.GiveBack(r, now, n)
			}
		}
		if !w.update(r, now) {
			return rule.Stale
		}
	}
}

// Check is Take without taking anything: Pass says that n tokens remain.
func (w *window) Check(r *compiledRule, now clock.Instant, n int32) rule.Decision {
	r = r.inForce()
	bucket := r.bucketOf(now)
	for {
		if w.compiled.Load() == r {
			outcome := w.counts.Check(bucket, n)
			if outcome != leap.NotOpen && w.compiled.Load() == r { // see Take
				if outcome == leap.Full && !w.large.mayPass(n, w.counts.Remaining()) {
					w.noteRefused(r, n)
					return rule.Block
				}
				return rule.Pass
			}
		}
		if !w.update(r, now) {
			return rule.Stale
		}
	}
}

// Count counts n tokens that passed at now without having been taken here, however many
// remain. It never fails: what comes too late for its bucket is counted in the present
// one, also under an earlier version of the rule.
func (w *window) Count(r *compiledRule, now clock.Instant, n int32) {
	r = r.inForce()
	if w.compiled.Load() == r && w.counts.TryCount(r.bucketOf(now), n) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	present := w.compiled.Load()
	w.rollTo(present, present.bucketOf(now))
	w.counts.TryCount(w.counts.OpenBucket(), n)
}

// GiveBack returns n tokens that Take took at now under that version of the rule, also
// if the window has other buckets now. What has left the window since needs no return.
func (w *window) GiveBack(r *compiledRule, now clock.Instant, n int32) {
	r = r.inForce()
	bucket := r.bucketOf(now)
	isLarge := n > 1 && int64(n) > w.large.above.Load() // what was saved for it is not for others
	if !isLarge && w.compiled.Load() == r && w.counts.TryGiveBack(bucket, n) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	present := w.compiled.Load()
	w.close(present)
	if r.version < w.shaped || !w.giveBackIn(present, bucket, n) {
		w.giveBackLogged(present, now, int64(n))
	}
	w.open(present, w.counts.OpenBucket())
}

// giveBackIn returns tokens that were taken in a bucket; false if that has left the window. The
// window is closed.
func (w *window) giveBackIn(r *compiledRule, bucket int64, n int32) bool {
	if !w.counts.GiveBack(bucket, n) {
		return false
	}
	w.warming.passed(r, -int64(n), r.bucketStart(bucket))
	if bucket == w.counts.OpenBucket() {
		w.counted -= int64(n)
	}
	w.carry.refund(bucket, r.span, int64(n))
	return true
}

// Adopt goes over to a newer version of the rule at once, rather than with the next call.
func (w *window) Adopt(r *compiledRule, now clock.Instant) { w.update(r.inForce(), now) }

// RetryAfter returns how long it takes from now until n tokens that were refused can pass
// if no other call comes; [rule.Never] if the rule never lets them pass, and 0 if it does not as
// long as the signal that the limit follows is as high as it is. It is rounded up to
// buckets, or to tenths of a second if buckets are longer, so that refusals of the same
// moment are alike. For a single token it is lock-free.
func (w *window) RetryAfter(now clock.Instant, n int32) time.Duration {
	if n == 1 && w.isWaitKnown() {
		return w.compiled.Load().fromNow(time.Duration(w.wait.Load()), now)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.compiled.Load()
	if r.mayPassLater(n) {
		return 0 // nobody knows when
	}
	return r.fromNow(w.retryAfter(r, n, w.counts.Remaining()), now)
}

// isWaitKnown says whether nothing was counted beyond the limit since the wait of a token
// was computed.
func (w *window) isWaitKnown() bool {
	remaining := w.counts.Remaining()
	return remaining >= 0 || remaining >= w.overdrawn.Load()
}

// laterThan returns when the open bucket began; 0 if that was not after now.
func (w *window) laterThan(now clock.Instant) clock.Instant {
	w.mu.Lock()
	defer w.mu.Unlock()
	if opened := w.compiled.Load().bucketStart(w.counts.OpenBucket()); opened > now {
		return opened
	}
	return 0
}
