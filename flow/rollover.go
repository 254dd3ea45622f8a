package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// settle makes the window ready for a call at now under given terms. It returns
// false if the window is ahead of them.
func (w *Window) settle(t *Terms, now clock.Instant) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	bucket := t.bucketOf(now)
	if present := w.terms.Load(); present != t {
		if t.version < present.version {
			return false
		}
		w.adopt(present, t, now)
	}
	w.roll(t, bucket)
	return bucket == w.counts.OpenBucket()
}

// roll opens a bucket unless it is open or the window is past it.
func (w *Window) roll(t *Terms, bucket int64) {
	if bucket > w.counts.OpenBucket() {
		w.close(t)
		if w.log != nil {
			w.logLeaving(t, bucket)
		}
		w.open(t, bucket)
	}
}

// adopt goes over from one set of terms to another, keeping what is counted.
func (w *Window) adopt(from, to *Terms, now clock.Instant) {
	now = max(now, from.bucketStart(w.counts.OpenBucket()))
	if !from.sameBuckets(to) {
		w.beginLog(from)
		w.roll(from, from.bucketOf(now))
	}
	w.close(from)
	if w.before != nil {
		w.inherit(from, now)
	}
	opened := w.counts.OpenBucket()
	if !from.sameBuckets(to) {
		opened = to.bucketOf(now)
		w.reshape(from, to, now)
	}
	w.cold.adopt(from, to, to.bucketStart(opened))
	w.course = course{}
	w.credit.adopt(from, to, to.bucketStart(opened))
	w.terms.Store(to)
	w.noteRefusals(to)
	w.open(to, opened)
}

// close shuts the open bucket and accounts for what was taken in it.
func (w *Window) close(t *Terms) {
	taken := w.counts.Close()
	bucket := w.counts.OpenBucket()
	w.cold.pass(t, taken-w.counted, t.bucketStart(bucket))
	w.counted = taken
	w.settleRefused(t, bucket)
	w.settleExtra(&w.credit, t, taken)
}

// settleExtra spends the saved token if it is among those that were taken in the
// open bucket.
func (w *Window) settleExtra(c *credit, t *Terms, taken int64) {
	bucket := w.counts.OpenBucket()
	if c.held(w.whole, w.fraction, t, bucket) == 0 && c.extra(w.fraction) == 1 &&
		taken > 0 && w.counts.Held(bucket) > w.whole {
		c.spend(bucket, t.bucketEnd(bucket), 1)
	}
}

// open settles what a bucket has room for and opens it.
func (w *Window) open(t *Terms, bucket int64) {
	if bucket > w.counts.OpenBucket() {
		w.counted = 0
	}
	ceiling := w.ceilingOf(&w.cold, &w.course, t, bucket)
	w.earn(&w.credit, t, bucket, ceiling)
	w.ceiling = ceiling
	w.whole, w.fraction = split(ceiling)
	w.openForLarge(t, bucket)
	held := w.credit.held(w.whole, w.fraction, t, bucket)
	w.counts.Open(bucket, w.whole+max(held, w.credit.extra(w.fraction)))
	// Who is refused later finds no room, whatever there is now.
	w.wait.Store(int64(w.retryAfter(t, 1, min(0, w.counts.Room()))))
}

// earn saves up what is left unused from the open bucket to one that has a ceiling,
// the open one or a later one.
func (w *Window) earn(c *credit, t *Terms, bucket int64, ceiling float64) {
	whole, fraction := split(ceiling)
	passed := bucket - w.counts.OpenBucket()
	unused := fraction * float64(passed)
	if passed > 0 && c.wanted > 0 {
		unused = w.unused(c, t, bucket, min(w.ceiling, ceiling))
	}
	c.lapse(ceiling, whole, bucket, t.span)
	c.earn(ceiling, unused/float64(t.span))
}

// ceilingOf returns the ceiling of a bucket, the open one or a later one, in
// tokens per window: that of the step in which the bucket begins.
func (w *Window) ceilingOf(cold *cold, course *course, t *Terms, bucket int64) float64 {
	return course.follow(t, bucket, cold.ceilingOfWindow(t, t.bucketStart(bucket)))
}

func (w *Window) retryAfter(t *Terms, n int32, room int64) time.Duration {
	var buckets int64
	switch isLarge := int64(n) > w.whole; {
	case int64(n) > t.most:
		return Never
	case w.largeHeld(t, w.counts.OpenBucket()) > 0, isLarge && n > 1 && t.warmsUp():
		buckets = w.roomIn(t, int64(n))
	case !isLarge:
		buckets = w.counts.FreeIn(n, room, w.credit.spent)
	default: // all the whole tokens and a saved one
		if int64(n)-1 > room {
			buckets = w.counts.FreeIn(n-1, room, w.credit.spent)
		}
		buckets = max(buckets, w.credit.earnedIn(w.fraction, w.counts.OpenBucket(), t.span))
	}
	return time.Duration(min(buckets, int64(forever/t.bucket))) * t.bucket
}

// retryStep is the step in which a window tells how long to wait, or its bucket
// if that is shorter.
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
