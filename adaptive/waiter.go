package adaptive

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/adaptive/internal/shed"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// levels is how many priorities there are. Level 0 is the most important one.
const levels = shed.Levels

func levelOf(p rule.Priority) int { return levels - 1 - p.Level() }

func priorityOf(level int) rule.Priority { return shed.PriorityOf(levels - 1 - level) }

// waiter is one call that waits.
type waiter struct {
	gate  *gate
	wake  func()
	since clock.Instant
	level int
	seen  bool // the threshold has counted its arrival
	below bool // it stands below the threshold

	// state leaves queued under gate.mu. After that only the goroutine of the call
	// changes it.
	state atomic.Uint32

	newer, older *waiter // guarded by gate.mu
}

// The states of a waiter.
const (
	queued   uint32 = iota
	granted         // it may pass, which Poll has not returned yet
	refused         // it may not wait any longer
	released        // the rule has changed or is gone
	left            // Poll has returned that it may pass, or the caller has given up
)

// Poll tells how the wait stands.
func (w *waiter) Poll(now clock.Instant) (rule.Ticket, time.Duration, rule.Decision) {
	if w.state.Load() == queued {
		if remaining := w.gate.endAtDeadline(w, now); remaining > 0 {
			return 0, remaining, rule.Wait
		}
	}
	switch w.state.Load() {
	case granted:
		w.state.Store(left)
		return 0, 0, rule.Pass
	case released:
		return 0, 0, rule.Stale
	}
	return 0, 0, rule.Block
}

// Leave ends the wait. A place that Poll has not returned yet is given back.
func (w *waiter) Leave(now clock.Instant) {
	if w.state.Load() == queued {
		w.gate.leaveQueue(w, now)
	}
	if w.state.Swap(left) == granted {
		w.gate.leave(now)
	}
}

// refusedBy returns the verdict by which the call may not wait.
func (w *waiter) refusedBy() uint64 {
	if w.below {
		return refuseBelow
	}
	return refuseAbove
}

// waiters are the calls that wait, by their levels, each in the order in which they came.
type waiters struct {
	oldest, newest [levels]*waiter
	size           [levels]int
	below          [levels]int // of these, calls that stand below the threshold
	total          int
}

func (q *waiters) push(w *waiter) {
	i := w.level
	w.older = q.newest[i]
	if q.newest[i] == nil {
		q.oldest[i] = w
	} else {
		q.newest[i].newer = w
	}
	q.newest[i] = w
	q.size[i]++
	q.total++
	if w.below {
		q.below[i]++
	}
}

func (q *waiters) remove(w *waiter) {
	i := w.level
	if w.older == nil {
		q.oldest[i] = w.newer
	} else {
		w.older.newer = w.newer
	}
	if w.newer == nil {
		q.newest[i] = w.older
	} else {
		w.newer.older = w.older
	}
	w.newer, w.older = nil, nil
	q.size[i]--
	q.total--
	if w.below {
		q.below[i]--
	}
}

// next returns the oldest waiter of the most important level; nil if nobody waits.
func (q *waiters) next() *waiter {
	for _, w := range q.oldest {
		if w != nil {
			return w
		}
	}
	return nil
}

// last returns the newest waiter of a level, but the newest of those below the threshold if
// there are any.
func (q *waiters) last(level int) *waiter {
	w := q.newest[level]
	for q.below[level] > 0 && !w.below {
		w = w.older
	}
	return w
}

// wakeAll has all waiters look again for how long they may wait.
func (q *waiters) wakeAll() {
	for _, w := range q.oldest {
		for ; w != nil; w = w.newer {
			w.wake()
		}
	}
}
