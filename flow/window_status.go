package flow

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Status returns the ceiling in force at now, in tokens per window; how many calls
// of one token that came now, one after the other, would pass; and how long it takes
// until that is more if nobody comes, 0 if it never is. It changes nothing.
//
// Of a rule that warms up it looks for more within one window, and at the first
// hundred occasions: if there is none, reset is 0.
func (w *Window) Status(now clock.Instant) (ceiling float64, room int64, reset time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.terms.Load()
	bucket := max(t.bucketOf(now), w.counts.OpenBucket())
	ceiling, room = w.outlook(t, bucket)
	if more, ok := w.growsIn(t, bucket, max(0, room)); ok {
		reset = t.bucketStart(more).Sub(now)
	}
	return ceiling, max(0, room), reset
}

// outlook returns the ceiling of a bucket, the open one or a later one, and the room
// in it, if nobody comes before.
func (w *Window) outlook(t *Terms, bucket int64) (ceiling float64, room int64) {
	open := w.counts.OpenBucket()
	if bucket == open {
		return w.ceiling, w.counts.Room()
	}
	cold, course, credit := w.cold, w.course.clone(), w.settledCredit(t)
	cold.pass(t, w.counts.Taken()-w.counted, t.bucketStart(open))
	cold.holdBack(t, int64(w.refused.Load()))
	ceiling = w.ceilingOf(&cold, &course, t, bucket)
	w.earn(&credit, t, bucket, ceiling)
	whole, fraction := split(ceiling)
	extra := max(credit.held(whole, fraction, t, bucket), credit.extra(fraction))
	return ceiling, whole + extra - w.counts.Held(bucket)
}

// settledCredit returns the credit as it is once the open bucket is closed.
func (w *Window) settledCredit(t *Terms) credit {
	settled := w.credit
	if t.warmsUp() {
		settled.want(int64(w.refused.Load()), w.whole, w.counts.OpenBucket())
	}
	w.settleExtra(&settled, t, w.counts.Taken())
	return settled
}

// growsIn returns the first bucket after the given one in which there is more than
// so much room, if nobody comes: false if there is none.
func (w *Window) growsIn(t *Terms, bucket, room int64) (more int64, ok bool) {
	const mostOccasions = 100
	span, open := int64(t.span), w.counts.OpenBucket()
	saved := w.savedIn(t)
	held, most := w.counts.Held(bucket), int64(math.Ceil(t.rule.Limit))
	occasions := 0
	for b := bucket + 1; b <= bucket+span && occasions < mostOccasions; b++ {
		leaves := int64(0)
		if left := b - span; left < open {
			leaves = w.counts.TakenIn(left)
		} else if left == open {
			leaves = w.counts.Taken()
		}
		held -= leaves
		warms := t.warmsUp() && t.curve.Step(t.bucketStart(b)) != t.curve.Step(t.bucketStart(b-1))
		if leaves == 0 && b != saved && !warms || most-held <= room {
			continue
		}
		occasions++
		if _, then := w.outlook(t, b); then > room {
			return b, true
		}
	}
	if saved > bucket+span {
		_, then := w.outlook(t, saved)
		return saved, then > room
	}
	return 0, false
}

// savedIn returns the bucket from which on there is a token saved, 0 if there is
// already or never will be.
func (w *Window) savedIn(t *Terms) int64 {
	credit := w.settledCredit(t)
	if w.fraction <= roundingError || credit.extra(w.fraction) == 1 {
		return 0
	}
	buckets := math.Ceil((1-credit.saved-roundingError)*float64(t.span)/w.fraction - roundingError)
	if buckets > float64(forever/t.bucket) {
		return 0
	}
	return w.counts.OpenBucket() + max(1, int64(buckets))
}
