package sharing

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

// windowUse is how many tokens of a window all instances have used, as the store told last. The mutex
// of the member guards it.
type windowUse struct {
	tokens, number int64
	isKnown        bool
	until          clock.Instant // as long as it may be that of the present window
}

// at returns what the fleet has used at an instant, unless the window is over.
func (w *windowUse) at(now clock.Instant) (tokens int64, known bool) {
	if !w.isKnown || now >= w.until {
		return 0, false
	}
	return w.tokens, true
}

// Used returns how many tokens of a window all instances have used, by the last answer of the backend
// and what was settled before it, and a number of that window: of windows of one length the later one
// has the higher number. It is not known before an answer, and of buckets never. Of [fleet.AskSlidingLog] the
// number changes once in each time as long as the window.
func (a *Asker) Used() (tokens, window int64, known bool) {
	a.member.mu.Lock()
	defer a.member.mu.Unlock()
	return a.told.tokens, a.told.number, a.told.isKnown
}

// learnUse takes a reply. The mutex of the member is held.
func (a *Asker) learnUse(now clock.Instant, reply *fleet.Reply) {
	a.told.until = now.Add(a.terms.Window)
	switch a.operation {
	case fleet.AskFixedWindow:
		a.told.number = reply.Bucket
		if reply.Reset > 0 {
			a.told.until = now.Add(reply.Reset)
		}
	case fleet.AskSlidingLog:
		a.told.number = int64(now) / int64(a.terms.Window)
	default:
		a.told = windowUse{}
		return
	}
	a.told.tokens, a.told.isKnown = reply.Limit-a.balance.left.Load(), true
}

// Used returns how many tokens of a window all instances have used or leased, by the last answer of the
// backend, and a number of that window: of windows of one length the later one has the higher number.
// It is not known before an answer, and never of [fleet.ModeLease]. Of a window of several buckets the number
// changes once in each time as long as the window.
func (b *Budget) Used() (tokens, window int64, known bool) {
	b.member.mu.Lock()
	defer b.member.mu.Unlock()
	return b.told.tokens, b.told.number, b.told.isKnown
}

// Watch has f called when an answer has told what Used returns: by whoever steps the member, one call
// at a time, without a lock held. f must not block.
func (b *Budget) Watch(f func()) { b.watch.Store(&f) }

// learnUse takes the state of the window that a reply tells, unless it has the shape of another version of
// the rule. The mutex of the member is held.
func (b *Budget) learnUse(now clock.Instant, w *windowState) {
	if w.windowShape != b.windowShape() {
		return
	}
	last := w.last
	if int64(len(w.counts)) > w.buckets { // it is the next bucket
		last--
	}
	b.told = windowUse{tokens: w.present(), number: last / max(1, w.buckets), isKnown: true, until: now.Add(b.terms.Window)}
	if w.buckets == 1 {
		b.told.until = clock.Instant((last + 1) * int64(b.terms.Window))
	}
	if f := b.watch.Load(); f != nil {
		b.member.calls = append(b.member.calls, *f)
	}
}
