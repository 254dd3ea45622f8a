package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// update brings the window up to the instant and the version of the rule of a call. It
// returns false if the window is ahead of them.
func (w *Window) update(t *Terms, now clock.Instant) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	bucket := t.bucketOf(now)
	if present := w.terms.Load(); present != t {
		if t.version < present.version {
			return false
		}
		w.adopt(present, t, now)
	}
	w.rollTo(t, bucket)
	return bucket == w.counts.OpenBucket()
}

// rollTo opens a bucket unless it is open or the window is past it.
func (w *Window) rollTo(t *Terms, bucket int64) {
	if bucket > w.counts.OpenBucket() {
		w.close(t)
		if w.log != nil {
			w.logLeaving(t, bucket)
		}
		w.open(t, bucket)
	}
}

// adopt goes over to another version of the rule and keeps what is counted.
func (w *Window) adopt(from, to *Terms, now clock.Instant) {
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
	w.warmUp.adopt(from, to, to.bucketStart(opened))
	w.history = limitHistory{}
	w.carry.adopt(from, to, to.bucketStart(opened))
	w.terms.Store(to)
	w.noteRefusals(to)
	w.open(to, opened)
}

// close shuts the open bucket and accounts for what was taken in it.
func (w *Window) close(t *Terms) {
	taken := w.counts.Close()
	bucket := w.counts.OpenBucket()
	w.warmUp.passed(t, taken-w.counted, t.bucketStart(bucket))
	w.counted = taken
	w.accountForRefused(t, bucket)
	w.spendExtra(&w.carry, t, taken)
}

// spendExtra spends the token that was carried over if it is among those that were
// taken in the open bucket.
func (w *Window) spendExtra(c *fractionCarry, t *Terms, taken int64) {
	bucket := w.counts.OpenBucket()
	if c.inWindow(w.whole, w.fraction, t, bucket) == 0 && c.available(w.fraction) == 1 &&
		taken > 0 && w.counts.Held(bucket) > w.whole {
		c.spend(bucket, t.bucketEnd(bucket), 1)
	}
}

// open computes how many tokens may be taken in a bucket, and opens it.
func (w *Window) open(t *Terms, bucket int64) {
	if bucket > w.counts.OpenBucket() {
		w.counted = 0
	}
	limit := w.limitOf(&w.warmUp, &w.history, t, bucket)
	w.saveUnused(&w.carry, t, bucket, limit)
	w.limit = limit
	w.whole, w.fraction = split(limit)
	w.openForLarge(t, bucket)
	spent := w.carry.inWindow(w.whole, w.fraction, t, bucket)
	w.counts.Open(bucket, w.whole+max(spent, w.carry.available(w.fraction)))
	// When a call is refused nothing remains, whatever does now.
	w.wait.Store(int64(w.retryAfter(t, 1, min(0, w.counts.Remaining()))))
}

// saveUnused carries over what was not used from the open bucket to a bucket of that
// limit, the open one or a later one.
func (w *Window) saveUnused(c *fractionCarry, t *Terms, bucket int64, limit float64) {
	whole, fraction := split(limit)
	passed := bucket - w.counts.OpenBucket()
	unused := fraction * float64(passed)
	if passed > 0 && c.wanted > 0 {
		unused = w.unused(c, t, bucket, min(w.limit, limit))
	}
	c.lapse(limit, whole, bucket, t.span)
	c.save(limit, unused/float64(t.span))
}

// limitOf returns the effective limit of the window that ends with a bucket, the open
// one or a later one, in tokens per window.
func (w *Window) limitOf(state *warmUpState, history *limitHistory, t *Terms, bucket int64) float64 {
	return history.add(t, bucket, state.windowLimit(t, t.bucketStart(bucket)))
}

// retryAfter returns how long after the start of the open bucket n tokens can be taken,
// given that so many remain and nobody else comes.
func (w *Window) retryAfter(t *Terms, n int32, remaining int64) time.Duration {
	var buckets int64
	switch isLarge := int64(n) > w.whole; {
	case int64(n) > t.most:
		return Never
	case w.largeHeld(t, w.counts.OpenBucket()) > 0, isLarge && n > 1 && t.warmsUp():
		buckets = w.freeIn(t, int64(n))
	case !isLarge:
		buckets = w.counts.FreeIn(n, remaining, w.carry.spentIn)
	default: // all the whole tokens and one that was carried over
		if int64(n)-1 > remaining {
			buckets = w.counts.FreeIn(n-1, remaining, w.carry.spentIn)
		}
		buckets = max(buckets, w.carry.nextIn(w.fraction, w.counts.OpenBucket(), t.span))
	}
	return time.Duration(min(buckets, int64(forever/t.bucket))) * t.bucket
}

// retryStep is what [Window.RetryAfter] is rounded to, or the bucket if that is shorter.
const retryStep = 100 * time.Millisecond

// fromNow returns what is left of a wait that is counted from the start of the
// present bucket.
func (t *Terms) fromNow(wait time.Duration, now clock.Instant) time.Duration {
	if t.bucket <= retryStep || wait == Never {
		return wait
	}
	elapsed := max(0, now.Sub(t.bucketStart(t.bucketOf(now))))
	return max(retryStep, wait-elapsed/retryStep*retryStep)
}

// sameBuckets says whether both versions of a rule have the same buckets.
func (t *Terms) sameBuckets(other *Terms) bool {
	return t.bucket == other.bucket && t.span == other.span
}

func (t *Terms) bucketOf(now clock.Instant) int64 { return int64(now) / int64(t.bucket) }

func (t *Terms) bucketStart(bucket int64) clock.Instant {
	return clock.Instant(bucket * int64(t.bucket))
}

// bucketEnd returns the last instant of a bucket.
func (t *Terms) bucketEnd(bucket int64) clock.Instant { return t.bucketStart(bucket+1) - 1 }
