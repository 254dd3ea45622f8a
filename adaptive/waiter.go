package adaptive

import (
	"time"

	"github.com/penstock-go/penstock/adaptive/internal/shed"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/pending"
	"github.com/penstock-go/penstock/rule"
)

// levels is how many priorities there are. Level 0 is the most important one.
const levels = shed.Levels

func levelOf(p rule.Priority) int { return levels - 1 - p.Level() }

func priorityOf(level int) rule.Priority { return shed.PriorityOf(levels - 1 - level) }

// waiter is one call that waits.
type waiter struct {
	pending.Call
	group *group
	class *class
	since clock.Instant
	level int
	seen  bool // the threshold has counted its arrival
	below bool // it stands below the threshold

	newer, older *waiter // guarded by overload.mu
}

// Look implements [pending.Place].
func (w *waiter) Look(now clock.Instant) time.Duration { return w.group.endAtDeadline(w, now) }

// Withdraw implements [pending.Place].
func (w *waiter) Withdraw(now clock.Instant) { w.group.leaveQueue(w, now) }

// GiveBack implements [pending.Place].
func (w *waiter) GiveBack(now clock.Instant, _ rule.Ticket) { w.group.leave(w.class, now) }

// refusedBy returns the verdict by which the call may not wait.
func (w *waiter) refusedBy() uint64 {
	if w.below {
		return refuseBelow
	}
	return refuseAbove
}
