package fault

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/pending"
	"github.com/penstock-go/penstock/internal/waitqueue"
	"github.com/penstock-go/penstock/rule"
)

// waiter is one call in a delay.
type waiter struct {
	pending.Call
	limiter *limiter      // that delays it
	over    clock.Instant // when the delay is over
	node    waitqueue.Node[waiter]
}

// Look implements [pending.Place]. At the end of its delay the call passes, or is refused if the rule
// aborts and has not ended. A call whose delay ended early passes.
func (w *waiter) Look(now clock.Instant) time.Duration {
	l := w.limiter
	l.mu.Lock()
	defer l.unlock()
	l.followCalendar(now)
	switch {
	case !w.Waits():
		return 0
	case now < w.over:
		return w.over.Sub(now)
	}
	l.delayed.Remove(&w.node)
	if l.aborts {
		w.Refuse()
	} else {
		w.Grant(0)
	}
	return 0
}

// Withdraw implements [pending.Place].
func (w *waiter) Withdraw(clock.Instant) {
	l := w.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.Waits() {
		l.delayed.Remove(&w.node)
		w.End()
	}
}

// GiveBack implements [pending.Place]: passing takes nothing.
func (w *waiter) GiveBack(clock.Instant, rule.Ticket) {}
