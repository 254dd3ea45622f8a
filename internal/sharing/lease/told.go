package lease

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/sharing/packed"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// seeCrowd takes the state of a window that the store tells. Instances may owe a token each, or more.
func (b *Budget) seeCrowd(now clock.Instant, w *windowState) {
	slack := b.terms.Limit/20 + float64(b.set.Instances())
	b.crowd.See(now, &b.terms, float64(max(w.used(), w.present())), slack)
}

// leftOfPart is how many more tokens may be leased while others have a greater limit.
func (b *Budget) leftOfPart(now clock.Instant) int64 {
	used := b.passes.Sum() + b.held.tokens() + b.coming(now, false) + b.coming(now, true)
	return max(0, b.crowd.Part(&b.terms, b.set.Instances())-used)
}

// soonGranted is within which time tokens of a lease may arrive without the limit being used up.
const soonGranted = 250 * time.Millisecond

// Balance returns how many tokens this instance has, below 0 if it owes some. It is not known
// while the instance has none but expects to be granted some within a quarter of a second: then
// the limit is not used up.
func (b *Budget) Balance(now clock.Instant) (left int64, known bool) {
	w := packed.Tokens(b.packed.Load())
	if w.Has(now, 1) {
		return w.Tokens(), true
	}
	if b.RetryAfter(now, 1) <= soonGranted {
		return 0, false
	}
	return min(0, w.Tokens()), true
}

// Used returns how many tokens of a window all instances have used or leased, by the last answer of the
// backend, and a number of that window: of windows of one length the later one has the higher number.
// It is not known before an answer, and never of [fleet.ModeLease]. Of a window of several buckets the number
// changes once in each time as long as the window.
func (b *Budget) Used() (tokens, window int64, known bool) {
	b.set.Mu.Lock()
	defer b.set.Mu.Unlock()
	return b.told.Tokens, b.told.Number, b.told.IsKnown
}

// Watch has f called when an answer has told what Used returns: by whoever steps the member, one call
// at a time, without a lock held. f must not block.
func (b *Budget) Watch(f func()) { b.watch.Store(&f) }

// learnUse takes the state of the window that a reply tells, unless it has the shape of another version of
// the rule. The mutex is held.
func (b *Budget) learnUse(now clock.Instant, w *windowState) {
	if w.windowShape != b.windowShape() {
		return
	}
	last := w.last
	if int64(len(w.counts)) > w.buckets { // it is the next bucket
		last--
	}
	b.told = usage.WindowUse{Tokens: w.present(), Number: last / max(1, w.buckets), IsKnown: true, Until: now.Add(b.terms.Window)}
	if w.buckets == 1 {
		b.told.Until = clock.Instant((last + 1) * int64(b.terms.Window))
	}
	if f := b.watch.Load(); f != nil {
		b.set.Later(*f)
	}
}
