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
	group *group
	class *class
	wake  func()
	since clock.Instant
	level int
	seen  bool // the threshold has counted its arrival
	below bool // it stands below the threshold

	// state leaves queued under overload.mu. After that only the goroutine of the call
	// changes it.
	state atomic.Uint32

	newer, older *waiter // guarded by overload.mu
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
		if remaining := w.group.endAtDeadline(w, now); remaining > 0 {
			return 0, remaining, rule.Wait
		}
	}
	switch w.state.Load() {
	case granted:
		w.state.Store(left)
		return rule.Ticket(w.group.index), 0, rule.Pass
	case released:
		return 0, 0, rule.Stale
	}
	return 0, 0, rule.Block
}

// Leave ends the wait. A place that Poll has not returned yet is given back.
func (w *waiter) Leave(now clock.Instant) {
	if w.state.Load() == queued {
		w.group.leaveQueue(w, now)
	}
	if w.state.Swap(left) == granted {
		w.group.leave(w.class, now)
	}
}

// refusedBy returns the verdict by which the call may not wait.
func (w *waiter) refusedBy() uint64 {
	if w.below {
		return refuseBelow
	}
	return refuseAbove
}
