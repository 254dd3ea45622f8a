package adaptive

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// levels is how many priorities there are. Level 0 is the most important one.
const levels = int(rule.PriorityCritical-rule.PrioritySheddable) + 1

// levelOf returns the level of a priority.
func levelOf(p rule.Priority) int {
	return int(rule.PriorityCritical - min(max(p, rule.PrioritySheddable), rule.PriorityCritical))
}

// waiter is one call that waits.
type waiter struct {
	gate  *gate
	wake  func()
	since clock.Instant
	level int

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
		w.gate.giveBack(now)
	}
}

// waiters are the calls that wait, by their levels, each in the order in which they came.
type waiters struct {
	oldest, newest [levels]*waiter
	size           [levels]int
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

// wakeAll has all waiters look again for how long they may wait.
func (q *waiters) wakeAll() {
	for _, w := range q.oldest {
		for ; w != nil; w = w.newer {
			w.wake()
		}
	}
}
