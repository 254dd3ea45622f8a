package isolation

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/pending"
	"github.com/penstock-go/penstock/internal/waitqueue"
	"github.com/penstock-go/penstock/rule"
)

// waiter is one call that waits for a place.
type waiter struct {
	pending.Call
	pool   *pool
	since  clock.Instant
	tenant rule.Attribute // whose call it is; nothing if that does not matter, or is not known

	node waitqueue.Node[waiter] // guarded by pool.mu

	nextEnded *waiter // of those to be woken; guarded by pool.mu, as the next is
	isEnding  bool    // it is among them
}

// Look implements [pending.Place].
func (w *waiter) Look(now clock.Instant) time.Duration {
	p := w.pool
	p.lock(now)
	defer p.unlock()
	if !w.Waits() {
		return 0
	}
	if remaining := p.deadlineOf(w).Sub(now); remaining > 0 {
		return min(remaining, max(p.ages.firstEnd(p.current.rule.MaxAge).Sub(now), 1)) // a place may be given back before
	}
	p.refuse(w)
	return 0
}

// Withdraw implements [pending.Place].
func (w *waiter) Withdraw(now clock.Instant) {
	w.pool.lock(now)
	defer w.pool.unlock()
	if w.Waits() {
		w.pool.queue.Remove(&w.node)
		w.pool.full.reset()
		w.End()
	}
}

// GiveBack implements [pending.Place].
func (w *waiter) GiveBack(now clock.Instant, t rule.Ticket) { w.pool.release(now, 0, t) }
