package flow

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// update brings the window up to the instant and the version of the rule of a call. It
// returns false if the window is ahead of them.
func (w *window) update(r *compiledRule, now clock.Instant) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	bucket := r.bucketOf(now)
	if present := w.compiled.Load(); present != r {
		if r.isBefore(present) {
			return false
		}
		w.adopt(present, r, now)
	}
	w.rollTo(r, bucket)
	return bucket == w.counts.OpenBucket()
}

// rollTo opens a bucket unless it is open or the window is past it.
func (w *window) rollTo(r *compiledRule, bucket int64) {
	if bucket > w.counts.OpenBucket() {
		w.close(r)
		if w.log != nil {
			w.logLeaving(r, bucket)
		}
		w.open(r, bucket)
	}
}

// adopt goes over to another version of the rule and keeps what is counted.
func (w *window) adopt(from, to *compiledRule, now clock.Instant) {
	now = max(now, from.bucketStart(w.counts.OpenBucket()))
	if !from.sameBuckets(to) {
		w.beginLog(from)
		w.rollTo(from, from.bucketOf(now))
	}
	w.close(from)
	if w.before != nil {
		w.takeOver(from, now)
	}
	opened := w.counts.OpenBucket()
	if !from.sameBuckets(to) {
		opened = to.bucketOf(now)
		w.reshape(from, to, now)
	}
	w.warming = w.warming.adopt(from, to, to.bucketStart(opened))
	w.carry.adopt(from, to, to.bucketStart(opened))
	w.compiled.Store(to)
	w.noteRefusals(to)
	w.open(to, opened)
}

// close shuts the open bucket and accounts for what was taken in it.
func (w *window) close(r *compiledRule) {
	taken := w.counts.Close()
	bucket := w.counts.OpenBucket()
	w.carry.refund(bucket, r.span, max(0, w.counted-taken))
	w.warming.passed(r, taken-w.counted, r.bucketStart(bucket))
	w.counted = taken
	w.accountForRefused(r, bucket)
	w.spendExtra(&w.carry, r, taken)
}

// spendExtra spends the token that was carried over if it is among those that were
// taken in the open bucket.
func (w *window) spendExtra(c *fractionCarry, r *compiledRule, taken int64) {
	bucket := w.counts.OpenBucket()
	if c.inWindow(w.whole(), w.fraction(), r, bucket) == 0 && c.available(w.fraction()) == 1 &&
		taken > 0 && w.counts.Held(bucket) > w.whole() {
		c.spend(bucket, r.bucketEnd(bucket), 1)
	}
}

// open computes how many tokens may be taken in a bucket, and opens it.
func (w *window) open(r *compiledRule, bucket int64) {
	if bucket > w.counts.OpenBucket() {
		w.counted = 0
	}
	limit := w.warming.limitOf(r, bucket)
	w.saveUnused(&w.carry, r, bucket, limit)
	w.limit = limit
	w.openForLarge(r, bucket)
	spent := w.carry.inWindow(w.whole(), w.fraction(), r, bucket)
	w.counts.Open(bucket, w.whole()+max(spent, w.carry.available(w.fraction())))
	// When a call is refused nothing remains, whatever does now.
	overdrawn := min(0, w.counts.Remaining())
	set(&w.overdrawn, overdrawn)
	set(&w.wait, int64(w.retryAfter(r, 1, overdrawn)))
}

// set stores a number that mostly is there: to look is quicker.
func set(at *atomic.Int64, number int64) {
	if at.Load() != number {
		at.Store(number)
	}
}

// saveUnused carries over what was not used from the open bucket to a bucket of that
// limit, the open one or a later one.
func (w *window) saveUnused(c *fractionCarry, r *compiledRule, bucket int64, limit float64) {
	whole, fraction := split(limit)
	passed, saving := bucket-w.counts.OpenBucket(), min(w.limit, limit)
	unused := fraction * float64(passed)
	if passed > 0 && c.wanted > 0 {
		unused = w.unused(c, r, bucket, saving)
	}
	c.lapse(saving, whole, bucket, r.span)
	c.save(limit, unused/float64(r.span))
}

// retryAfter returns how long after the start of the open bucket n tokens can be taken,
// given that so many remain and nobody else comes.
func (w *window) retryAfter(r *compiledRule, n int32, remaining int64) time.Duration {
	var buckets int64
	switch {
	case int64(n) > r.most:
		return rule.Never
	case w.largeHeld(r, w.counts.OpenBucket()) > 0, w.isLarge(r, n):
		buckets = w.freeIn(r, int64(n), remaining)
	case int64(n) <= w.whole():
		buckets = w.counts.FreeIn(n, remaining, w.carry.spentIn)
	default: // all the whole tokens and one that was carried over
		if int64(n)-1 > remaining {
			buckets = w.counts.FreeIn(n-1, remaining, w.carry.spentIn)
		}
		buckets = max(buckets, w.carry.nextIn(w.fraction(), w.counts.OpenBucket(), r.span))
	}
	return r.lengthOf(w.counts.OpenBucket(), buckets)
}

// lengthOf returns how long so many buckets are, the given one being the first.
func (r *compiledRule) lengthOf(first, buckets int64) time.Duration {
	buckets = min(buckets, int64(forever/r.bucket))
	if r.windows != nil {
		return r.bucketStart(first + buckets).Sub(r.bucketStart(first))
	}
	return time.Duration(buckets) * r.bucket
}

// retryStep is what window.RetryAfter is rounded to, or the bucket if that is shorter.
const retryStep = 100 * time.Millisecond

// fromNow returns what is left of a wait that is counted from the start of the
// present bucket.
func (r *compiledRule) fromNow(wait time.Duration, now clock.Instant) time.Duration {
	if r.bucket <= retryStep || wait == rule.Never {
		return wait
	}
	elapsed := max(0, now.Sub(r.bucketStart(r.bucketOf(now))))
	return max(retryStep, wait-elapsed/retryStep*retryStep)
}

// closedCarry returns what is carried over as it will be when the open bucket is closed.
func (w *window) closedCarry(r *compiledRule) fractionCarry {
	carry, open, taken := w.carry, w.counts.OpenBucket(), w.counts.Taken()
	carry.refund(open, r.span, max(0, w.counted-taken))
	if r.warmsUp() {
		carry.want(int64(w.refused.Load()), w.whole(), open)
	}
	w.spendExtra(&carry, r, taken)
	return carry
}
