package flow

import (
	"math"
	"sort"
	"sync/atomic"
)

// largeCalls are calls that take more than the effective limit of a window that warms
// up, but no more than the limit of the rule. From the first refusal of such a call on,
// what other calls leave unused is carried over until it suffices for the large one. So
// large calls pass at the effective limit on average. A window may then exceed the
// effective limit, though never the limit of the rule, by what was unused before. Only
// large calls can take what is carried over for them.
//
// When the effective limit rises to a large call that was refused, the call stays large
// for one window from then on: later it finds the window empty, if nobody else comes.
type largeCalls struct {
	above atomic.Int64 // calls of more tokens than this are large
	spare atomic.Int64 // what they may take in the open bucket beyond what remains
}

// mayPass says whether a call of n tokens is a large one for which enough is saved.
func (l *largeCalls) mayPass(n int32, remaining int64) bool {
	spare := l.spare.Load()
	return spare > 0 && int64(n) > l.above.Load() && int64(n) <= remaining+spare
}

// takeSaved takes n tokens in the open bucket if they are a large call for which
// enough is saved.
func (w *window) takeSaved(r *compiledRule, bucket int64, n int32) bool {
	return w.large.mayPass(n, w.counts.Remaining()) && w.takeSavedSlowly(r, bucket, int64(n))
}

func (w *window) takeSavedSlowly(r *compiledRule, bucket, n int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.compiled.Load() != r || w.counts.OpenBucket() != bucket {
		return false
	}
	w.close(r)
	defer w.open(r, bucket)
	held := w.counts.Held(bucket)
	beyond := held + n - w.whole() // what remains does not suffice, unless others gave back meanwhile
	if n <= w.carry.largeAbove(w.whole(), bucket, r.span) || w.spare(r, bucket) < beyond {
		return false
	}
	w.counts.GiveBack(bucket, -int32(n))
	w.warming.passed(r, n, r.bucketStart(bucket))
	w.counted += n
	if beyond > 0 {
		w.carry.spend(bucket, r.bucketEnd(bucket), beyond)
	}
	return true
}

// spare returns how many saved tokens a large call may take in a bucket.
func (w *window) spare(r *compiledRule, bucket int64) int64 {
	if w.carry.wanted == 0 || w.carry.inWindow(w.whole(), w.fraction(), r, bucket) > 0 {
		return 0
	}
	return min(int64(w.carry.saved+roundingError), r.most-w.whole())
}

// openForLarge computes what large calls may take in a bucket that is being opened.
func (w *window) openForLarge(r *compiledRule, bucket int64) {
	set(&w.large.above, w.carry.largeAbove(w.whole(), bucket, r.span))
	set(&w.large.spare, max(0, w.spare(r, bucket)-w.carry.available(w.fraction())))
}

// largeHeld returns how many tokens the window that ends with a bucket holds beyond its
// effective limit, for a large call.
func (w *window) largeHeld(r *compiledRule, bucket int64) int64 {
	if w.carry.spent <= 1 {
		return 0
	}
	return w.carry.inWindow(w.whole(), w.fraction(), r, bucket)
}

// noteRefusals notes refused calls from now on, if the rule warms up.
func (w *window) noteRefusals(r *compiledRule) {
	largest := int32(math.MaxInt32) // no call is larger
	if r.warmsUp() {
		largest = 0
	}
	if w.refused.Load() != largest {
		w.refused.Store(largest)
	}
}

// noteRefused notes that a call of n tokens was refused, if it is the largest since the
// bucket was opened. A call that can never pass does not count.
func (w *window) noteRefused(r *compiledRule, n int32) {
	for known := w.refused.Load(); n > known && int64(n) <= r.most; known = w.refused.Load() {
		if w.refused.CompareAndSwap(known, n) {
			return
		}
	}
}

// accountForRefused accounts for the calls that were refused in a bucket, which is
// closed: the resource was not idle, and there may be a large call to save for.
func (w *window) accountForRefused(r *compiledRule, bucket int64) {
	if !r.warmsUp() || w.refused.Load() == 0 {
		return
	}
	n := int64(w.refused.Swap(0))
	w.warming.refused(r, n)
	w.carry.want(n, w.whole(), bucket)
}

// largeAbove returns how many tokens a call may take in a bucket that is not a large one,
// given the whole tokens of the limit.
func (c *fractionCarry) largeAbove(whole, bucket int64, span int32) int64 {
	if c.wanted > 0 && bucket < c.wantedIn+int64(span) {
		return min(whole, max(1, c.wantedAbove))
	}
	return whole
}

// want notes that a call of n tokens was refused in a bucket. If it takes more than the
// whole tokens of the limit, tokens are saved for it.
func (c *fractionCarry) want(n, whole, bucket int64) {
	if n > max(1, whole) {
		c.wanted, c.wantedIn, c.wantedAbove = max(c.wanted, n), bucket, whole
	}
}

// unused returns how many tokens of a limit the buckets from the open one to the one
// before the given one leave, in all, if nothing else is taken.
func (w *window) unused(c *fractionCarry, r *compiledRule, bucket int64, limit float64) float64 {
	open := w.counts.OpenBucket()
	saved := c.spent * max(0, min(bucket, c.spentIn+int64(r.span))-open)
	return max(0, limit*float64(bucket-open)-float64(w.counts.HeldOver(bucket)-saved))
}

// lapse stops saving for large calls that have not come again for twice the time that it
// takes to save for them at a limit, and for those that have not come for a window while
// the effective limit has risen to them.
func (c *fractionCarry) lapse(limit float64, whole, bucket int64, span int32) {
	patience := (1 + 2*float64(c.wanted)/limit) * float64(span)
	if float64(bucket-c.wantedIn) > patience || c.wanted <= whole && bucket >= c.wantedIn+int64(span) {
		c.wanted = 0
	}
}

// isLarge says whether a call of n tokens, which was refused, is a large one.
func (w *window) isLarge(r *compiledRule, n int32) bool {
	if n == 1 || !r.warmsUp() {
		return false
	}
	c := w.closedCarry(r)
	return int64(n) > c.largeAbove(w.whole(), w.counts.OpenBucket(), r.span)
}

// freeIn returns after how many buckets from the open one n tokens can be taken, saved
// ones included, given that so many remain and no other call comes.
func (w *window) freeIn(r *compiledRule, n, remaining int64) int64 {
	c, open, span := w.closedCarry(r), w.counts.OpenBucket(), int64(r.span)
	taken := w.counts.Remaining() - remaining               // by others, before
	toSave := w.counts.HeldOver(open+span) + (taken+n)*span // at most, in tokens times buckets
	most := span + 1 + int64(min(math.Ceil(float64(toSave)/w.limit), 1<<40))
	free := func(above int64) int64 { // when calls of more tokens can take saved ones
		return 1 + int64(sort.Search(int(most), func(k int) bool {
			bucket := open + 1 + int64(k)
			spent := c.inWindow(w.whole(), w.fraction(), r, bucket)
			left := w.whole() + spent - w.counts.Held(bucket)
			if bucket < open+span {
				left -= taken
			}
			if spent > 0 || n <= above {
				return n <= left
			}
			unused := max(0, w.unused(&c, r, bucket, w.limit)-float64(taken*min(bucket-open, span)))
			return n <= left+min(int64(c.saved+unused/float64(span)+roundingError), r.most-w.whole())
		}))
	}
	buckets := free(c.largeAbove(w.whole(), open, r.span))
	if n <= w.whole() && open+buckets >= c.wantedIn+span {
		return free(w.whole()) // nothing is saved for it any more by then
	}
	return buckets
}
