package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

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
	w.roll(t, bucket)
	return bucket == w.counts.OpenBucket()
}

// roll opens a bucket unless it is open or the window is past it.
func (w *Window) roll(t *Terms, bucket int64) {
	if bucket > w.counts.OpenBucket() {
		w.close(t)
		w.open(t, bucket)
	}
}

// adopt goes over from one set of terms to another, keeping what is counted.
func (w *Window) adopt(from, to *Terms, bucket int64) {
	w.close(from)
	opened := w.counts.OpenBucket()
	if !from.sameBuckets(to) {
		// A token counts in the new bucket that the end of its old one falls
		// in, or in the present one if that has not come yet.
		opened = max(bucket, to.bucketOf(from.bucketStart(opened)))
		w.counts.Resize(to.span, opened, func(old int64) int64 {
			return to.bucketOf(from.bucketEnd(old))
		})
		w.counted = w.counts.Close()
		w.credit.renumber(func(old int64) int64 { return min(to.bucketOf(from.bucketEnd(old)), opened) })
	}
	w.cold.adopt(from, to, to.bucketStart(opened))
	w.course.adopt(from, to, opened)
	w.credit.adopt(from, to)
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
		c.spend(bucket, 1)
	}
}

// open settles what a bucket has room for and opens it.
func (w *Window) open(t *Terms, bucket int64) {
	passed, before := bucket-w.counts.OpenBucket(), w.ceiling
	if passed > 0 {
		w.counted = 0
	}
	w.ceiling = w.ceilingOf(&w.cold, &w.course, t, bucket)
	w.whole, w.fraction = split(w.ceiling)
	unused := w.fraction * float64(passed)
	if passed > 0 && w.credit.wanted > 0 {
		unused = w.unused(&w.credit, t, bucket, min(before, w.ceiling))
	}
	w.credit.lapse(w.ceiling, w.whole, bucket, t.span)
	w.credit.earn(w.ceiling, unused/float64(t.span))
	w.openForLarge(t, bucket)
	held := w.credit.held(w.whole, w.fraction, t, bucket)
	w.counts.Open(bucket, w.whole+max(held, w.credit.extra(w.fraction)))
	// Who is refused later finds no room, whatever there is now.
	w.wait.Store(int64(w.retryAfter(t, 1, min(0, w.counts.Room()))))
}

// ceilingOf returns the ceiling of a bucket, the open one or a later one, in
// tokens per window: that of the step in which the bucket begins.
func (w *Window) ceilingOf(cold *cold, course *course, t *Terms, bucket int64) float64 {
	ceiling := cold.ceilingOfWindow(t, t.bucketStart(bucket), func(stepStart clock.Instant) float64 {
		bucket := max(w.counts.OpenBucket(), t.bucketOf(stepStart)-1)
		large := w.largeHeld(t, bucket)
		return course.atLast(w.counts.Held(bucket)-large) + float64(large)
	})
	return course.follow(t, bucket, ceiling)
}

func (w *Window) retryAfter(t *Terms, n int32, room int64) time.Duration {
	var buckets int64
	switch missing := int64(n) - w.whole; {
	case w.largeHeld(t, w.counts.OpenBucket()) > 0, missing > 0 && n > 1 && t.warmsUp() && int64(n) <= t.most:
		buckets = w.roomIn(t, int64(n))
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

// retryStep is the step in which a window tells how long to wait, or its bucket
// if that is shorter.
const retryStep = 100 * time.Millisecond

// fromNow returns what is left of a wait that is counted from the start of the
// present bucket.
func (t *Terms) fromNow(wait time.Duration, now clock.Instant) time.Duration {
	if t.bucket <= retryStep || wait == 0 {
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
