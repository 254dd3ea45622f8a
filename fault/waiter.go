package fault

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// waiter is one call in a delay.
type waiter struct {
	limiter *limiter // that delays it
	wake    func()
	over    clock.Instant // when the delay is over

	// injector.mu guards what follows.
	waits          bool // it is among the waiters
	next, previous *waiter
}

// Poll tells how the delay stands. At its end the call passes, or is refused if the rule
// aborts and has not ended. A call whose delay ended early passes.
func (w *waiter) Poll(now clock.Instant) (rule.Ticket, time.Duration, rule.Decision) {
	l := w.limiter
	l.mu.Lock()
	defer l.unlock()
	l.followCalendar(now)
	switch {
	case !w.waits:
		return 0, 0, rule.Pass
	case now < w.over:
		return 0, w.over.Sub(now), rule.Wait
	}
	l.delayed.remove(w)
	if l.aborts {
		return 0, 0, rule.Block
	}
	return 0, 0, rule.Pass
}

// Leave ends the delay of a call that has given up.
func (w *waiter) Leave(clock.Instant) {
	l := w.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.waits {
		l.delayed.remove(w)
	}
}

// waiters is a list of the calls in a delay.
type waiters struct {
	first, last *waiter
	size        int
}

func (l *waiters) add(w *waiter) {
	if w.previous = l.last; w.previous != nil {
		w.previous.next = w
	} else {
		l.first = w
	}
	l.last, w.waits = w, true
	l.size++
}

func (l *waiters) remove(w *waiter) {
	if w.next != nil {
		w.next.previous = w.previous
	} else {
		l.last = w.previous
	}
	if w.previous != nil {
		w.previous.next = w.next
	} else {
		l.first = w.next
	}
	w.next, w.previous, w.waits = nil, nil, false
	l.size--
}
