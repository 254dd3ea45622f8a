package flow

import (
	"math"
	"sort"
	"sync/atomic"
)

// largeCalls are those that take more than the ceiling of a window that warms up,
// but no more than its limit. What calls leave unused of the ceiling while such a
// call is wanted is saved up until it suffices, so that these calls pass at the
// ceiling on average: a window may exceed the ceiling then, though never the limit,
// by what was unused before. Only they can take what is saved.
type largeCalls struct {
	above atomic.Int64 // calls of more tokens than this are large
	spare atomic.Int64 // what they may take in the open bucket beyond its room
}

// mayPass says whether a call of n tokens is a large one for which enough is saved.
func (l *largeCalls) mayPass(n int32, room int64) bool {
	spare := l.spare.Load()
	return spare > 0 && int64(n) > l.above.Load() && int64(n) <= room+spare
}

// takeSaved takes n tokens in the open bucket if they are a large call for which
// enough is saved.
func (w *Window) takeSaved(t *Terms, bucket int64, n int32) bool {
	return w.large.mayPass(n, w.counts.Room()) && w.takeSavedSlowly(t, bucket, int64(n))
}

func (w *Window) takeSavedSlowly(t *Terms, bucket, n int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.terms.Load() != t || w.counts.OpenBucket() != bucket {
		return false
	}
	w.close(t)
	defer w.open(t, bucket)
	held := w.counts.Held(bucket)
	if n <= w.whole || w.spare(t, bucket) < held+n-w.whole {
		return false
	}
	w.counts.GiveBack(bucket, -int32(n))
	w.cold.pass(t, n, t.bucketStart(bucket))
	w.counted += n
	w.credit.spend(bucket, t.bucketEnd(bucket), held+n-w.whole)
	return true
}

// spare returns how many saved tokens a large call may take in a bucket.
func (w *Window) spare(t *Terms, bucket int64) int64 {
	if w.credit.wanted == 0 || w.credit.held(w.whole, w.fraction, t, bucket) > 0 {
		return 0
	}
	return min(int64(w.credit.saved+roundingError), t.most-w.whole)
}

// openForLarge settles what large calls may take in a bucket that is being opened.
func (w *Window) openForLarge(t *Terms, bucket int64) {
	w.large.above.Store(w.whole)
	w.large.spare.Store(max(0, w.spare(t, bucket)-w.credit.extra(w.fraction)))
}

// largeHeld returns how many tokens beyond its ceiling the window that ends with a bucket
// holds for a large call.
func (w *Window) largeHeld(t *Terms, bucket int64) int64 {
	if w.credit.out <= 1 {
		return 0
	}
	return w.credit.held(w.whole, w.fraction, t, bucket)
}

// noteRefusals has refused calls noted from now on, if that matters.
func (w *Window) noteRefusals(t *Terms) {
	if t.warmsUp() {
		w.refused.Store(0)
	} else {
		w.refused.Store(math.MaxInt32) // no call is larger
	}
}

// noteRefused notes that a call of n tokens was refused for lack of room, which is
// more than those that were noted since the bucket was opened. What can never pass
// does not count.
func (w *Window) noteRefused(t *Terms, n int32) {
	for known := w.refused.Load(); n > known && int64(n) <= t.most; known = w.refused.Load() {
		if w.refused.CompareAndSwap(known, n) {
			return
		}
	}
}

// settleRefused accounts for what was refused in a bucket, which is closed: it was
// not idle, and there may be something to save for.
func (w *Window) settleRefused(t *Terms, bucket int64) {
	if c := &w.credit; c.out > 1 && c.spent == bucket {
		c.unspend(max(0, c.out-max(0, w.counts.Held(bucket)-w.whole))) // what was given back since
	}
	if !t.warmsUp() || w.refused.Load() == 0 {
		return
	}
	n := int64(w.refused.Swap(0))
	w.cold.holdBack(t, n)
	w.credit.want(n, w.whole, bucket)
}

// want notes that a call of n tokens was refused in a bucket: one that takes more
// than the whole tokens is saved up for.
func (c *credit) want(n, whole, bucket int64) {
	if n > max(1, whole) {
		c.wanted, c.wantedIn = max(c.wanted, n), bucket
	}
}

// unused returns how many tokens of a ceiling the buckets from the open one to the one
// before the given one leave, in all, if nothing else is taken.
func (w *Window) unused(c *credit, t *Terms, bucket int64, ceiling float64) float64 {
	open := w.counts.OpenBucket()
	saved := c.out * max(0, min(bucket, c.spent+int64(t.span))-open)
	return max(0, ceiling*float64(bucket-open)-float64(w.counts.HeldOver(bucket)-saved))
}

// lapse gives up saving for large calls that do not come again: not in twice the time
// that it takes to save for them, or that are no longer large.
func (c *credit) lapse(ceiling float64, whole, bucket int64, span int) {
	patience := (1 + 2*float64(c.wanted)/ceiling) * float64(span)
	if c.wanted <= whole || float64(bucket-c.wantedIn) > patience {
		c.wanted = 0
	}
}

// adoptWanted goes over to changed terms: what is saved for a large call is a share of
// the limit.
func (c *credit) adoptWanted(from, to *Terms) {
	if c.wanted == 0 {
		return
	}
	if !to.warmsUp() || to.rule.Limit == 0 {
		c.wanted = 0
		return
	}
	c.wanted = min(c.wanted, to.most)
	c.saved *= min(1, to.rule.Limit/from.rule.Limit)
}

// roomIn returns after how many buckets from the open one there is room for n tokens,
// saved ones included, if nobody else comes.
func (w *Window) roomIn(t *Terms, n int64) int64 {
	c, span := w.credit, int64(t.span)
	w.settleExtra(&c, t, w.counts.Taken())
	most := span + 1 + int64(min(math.Ceil(float64(n)/w.ceiling*float64(span)), 1<<40))
	return 1 + int64(sort.Search(int(most), func(k int) bool {
		bucket := w.counts.OpenBucket() + 1 + int64(k)
		held := c.held(w.whole, w.fraction, t, bucket)
		room := w.whole + held - w.counts.Held(bucket)
		if held > 0 || n <= w.whole {
			return n <= room
		}
		earned := w.unused(&c, t, bucket, w.ceiling) / float64(span)
		return n <= room+min(int64(c.saved+earned+roundingError), t.most-w.whole)
	}))
}
