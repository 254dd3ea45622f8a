package sharing

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// Used returns how many tokens of a window all instances have used, by the last answer of the backend
// and what was settled before it, and a number of that window: of windows of one length the later one
// has the higher number. It is not known before an answer, and of buckets never. Of [fleet.AskSlidingLog] the
// number changes once in each time as long as the window.
func (a *Asker) Used() (tokens, window int64, known bool) {
	a.member.mu.Lock()
	defer a.member.mu.Unlock()
	return a.told.Tokens, a.told.Number, a.told.IsKnown
}

// learnUse takes a reply. The mutex of the member is held.
func (a *Asker) learnUse(now clock.Instant, reply *fleet.Reply) {
	a.told.Until = now.Add(a.terms.Window)
	switch a.operation {
	case fleet.AskFixedWindow:
		a.told.Number = reply.Bucket
		if reply.Reset > 0 {
			a.told.Until = now.Add(reply.Reset)
		}
	case fleet.AskSlidingLog:
		a.told.Number = int64(now) / int64(a.terms.Window)
	default:
		a.told = usage.WindowUse{}
		return
	}
	a.told.Tokens, a.told.IsKnown = reply.Limit-a.balance.left.Load(), true
}

// Used returns how many tokens of a window all instances have used or leased, by the last answer of the
// backend, and a number of that window: of windows of one length the later one has the higher number.
// It is not known before an answer, and never of [fleet.ModeLease]. Of a window of several buckets the number
// changes once in each time as long as the window.
func (b *Budget) Used() (tokens, window int64, known bool) {
	b.member.mu.Lock()
	defer b.member.mu.Unlock()
	return b.told.Tokens, b.told.Number, b.told.IsKnown
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
	b.told = usage.WindowUse{Tokens: w.present(), Number: last / max(1, w.buckets), IsKnown: true, Until: now.Add(b.terms.Window)}
	if w.buckets == 1 {
		b.told.Until = clock.Instant((last + 1) * int64(b.terms.Window))
	}
	if f := b.watch.Load(); f != nil {
		b.member.calls = append(b.member.calls, *f)
	}
}
