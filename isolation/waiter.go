package isolation

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/waitqueue"
	"github.com/penstock-go/penstock/rule"
)

// waiter is one call that waits for a place.
type waiter struct {
	pool  *pool
	wake  func()
	since clock.Instant

	// state leaves queued under pool.mu. After that only the goroutine of the call
	// changes it.
	state  atomic.Uint32
	ticket rule.Ticket // of one that is granted; written before the state

	tenant rule.Attribute // whose call it is; nothing if that does not matter, or is not known

	node waitqueue.Node[waiter] // guarded by pool.mu

	nextEnded *waiter // of those to be woken; guarded by pool.mu, as the next is
	isEnding  bool    // it is among them
}

// The states of a waiter.
const (
	queued   uint32 = iota
	granted         // it has a place, which Poll has not returned yet
	refused         // it may not wait any longer
	released        // the rule has changed or is gone
	left            // Poll has returned the place, or the caller has given up
)

// Poll tells how the wait stands.
func (w *waiter) Poll(now clock.Instant) (rule.Ticket, time.Duration, rule.Decision) {
	if w.state.Load() == queued {
		if remaining := w.endAtDeadline(now); remaining > 0 {
			return 0, remaining, rule.Wait
		}
	}
	switch w.state.Load() {
	case granted:
		w.state.Store(left)
		return w.ticket, 0, rule.Pass
	case released:
		return 0, 0, rule.Stale
	}
	return 0, 0, rule.Block
}

// endAtDeadline returns how long the call may still wait; 0 if its wait has ended, be
// it because the time is over.
func (w *waiter) endAtDeadline(now clock.Instant) time.Duration {
	p := w.pool
	p.lock(now)
	defer p.unlock()
	if w.state.Load() != queued {
		return 0
	}
	if remaining := p.deadlineOf(w).Sub(now); remaining > 0 {
		return min(remaining, max(p.ages.firstEnd(p.current.rule.MaxAge).Sub(now), 1)) // a place may be given back before
	}
	p.finish(w, refused)
	return 0
}

// Leave ends the wait. A place that Poll has not returned yet is given back.
func (w *waiter) Leave(now clock.Instant) {
	if w.state.Load() == queued {
		w.leaveQueue(now)
	}
	if w.state.Swap(left) == granted {
		w.pool.release(now, 0, w.ticket)
	}
}

func (w *waiter) leaveQueue(now clock.Instant) {
	w.pool.lock(now)
	defer w.pool.unlock()
	if w.state.Load() == queued {
		w.pool.queue.Remove(&w.node)
		w.pool.full.reset()
		w.state.Store(left)
	}
}
