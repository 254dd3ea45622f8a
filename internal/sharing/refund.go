package sharing

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

// Refund hands back up to n tokens that calls took, which are not known: of a window no more than
// passed here in it. The store keeps no more than the limit, so whatever is handed back, no more can
// pass. In an outage it does nothing.
//
// There is no such thing for a [Budget]: a store that has a good deal less than it had before is
// thought to have lost its state, and its instances tell it what they have seen.
func (a *Asker) Refund(now clock.Instant, n int32) {
	m := a.member
	m.mu.Lock()
	defer m.unlock(now)
	if a.place < 0 || a.outage.Active {
		return
	}
	a.count(now)
	tokens := int64(n)
	if !a.passes.IsOff() {
		tokens = min(tokens, a.passes.Sum())
		a.passes.Add(-tokens)
	}
	a.back = min(a.back+tokens, fleet.MaxTokens) // whatever clients say, the request is one that the store takes
	a.flushSoon()
	m.hasten(a.counted)
}
