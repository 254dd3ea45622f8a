package flow

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Status returns the effective limit at now, in tokens per window; how many calls of
// one token that came now, one after the other, would pass; and how long it takes until
// more would pass if no call comes, 0 if never. It changes nothing but the limit, if that
// follows a signal which has changed.
//
// For a rule that warms up it looks ahead by one window, and at most at a hundred
// buckets in which that may change: reset is 0 if more pass in none of them.
func (w *window) Status(now clock.Instant) (limit float64, remaining int64, reset time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.catchUp(now)
	bucket := max(r.bucketOf(now), w.counts.OpenBucket())
	limit, remaining = w.lookAhead(r, bucket)
	if more, ok := w.growsIn(r, bucket, max(0, remaining)); ok {
		reset = r.bucketStart(more).Sub(now)
	}
	return limit, max(0, remaining), reset
}

// lookAhead returns the effective limit of a bucket, the open one or a later one, and
// how many tokens remain in it if no call comes before.
func (w *window) lookAhead(r *compiledRule, bucket int64) (limit float64, remaining int64) {
	open := w.counts.OpenBucket()
	if bucket == open {
		return w.limit, w.counts.Remaining()
	}
	var copied windowWarming
	warming, carry := w.warming.copyTo(&copied), w.closedCarry(r)
	warming.passed(r, w.counts.Taken()-w.counted, r.bucketStart(open))
	warming.refused(r, int64(w.refused.Load()))
	limit = warming.limitOf(r, bucket)
	w.saveUnused(&carry, r, bucket, limit)
	whole, fraction := split(limit)
	extra := max(carry.inWindow(whole, fraction, r, bucket), carry.available(fraction))
	return limit, whole + extra - w.counts.Held(bucket)
}

// growsIn returns the first bucket after the given one in which more than so many
// tokens remain, if no call comes: false if there is none.
func (w *window) growsIn(r *compiledRule, bucket, remaining int64) (more int64, ok bool) {
	const mostOccasions = 100
	span, open := int64(r.span), w.counts.OpenBucket()
	saved := w.savedIn(r)
	held, most := w.counts.Held(bucket), int64(math.Ceil(r.rule.Limit))
	occasions := 0
	for b := bucket + 1; b <= bucket+span && occasions < mostOccasions; b++ {
		leaves := int64(0)
		if left := b - span; left < open {
			leaves = w.counts.TakenIn(left)
		} else if left == open {
			leaves = w.counts.Taken()
		}
		held -= leaves
		warms := r.warmsUp() && r.curve.Step(r.bucketStart(b)) != r.curve.Step(r.bucketStart(b-1))
		if leaves == 0 && b != saved && !warms || most-held <= remaining {
			continue
		}
		occasions++
		if _, then := w.lookAhead(r, b); then > remaining {
			return b, true
		}
	}
	if saved > bucket+span {
		_, then := w.lookAhead(r, saved)
		return saved, then > remaining
	}
	return 0, false
}

// savedIn returns the bucket from which on there is a token saved, 0 if there is
// already or never will be.
func (w *window) savedIn(r *compiledRule) int64 {
	carry := w.closedCarry(r)
	if w.fraction() == 0 || carry.available(w.fraction()) == 1 {
		return 0
	}
	buckets := math.Ceil((1-carry.saved-roundingError)*float64(r.span)/w.fraction() - roundingError)
	if buckets > float64(forever/r.bucket) {
		return 0
	}
	return w.counts.OpenBucket() + max(1, int64(buckets))
}
