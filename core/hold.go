package core

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// limiter is what enforces a rule and holds what it has counted: a window or a
// queue.
type limiter struct {
	window *flow.Window
	queue  *flow.Queue
}

func newLimiter(t *flow.Terms, now clock.Instant) limiter {
	if t.Rule().Limiter() == flow.WindowLimiter {
		return limiter{window: flow.NewWindow(t, now)}
	}
	return limiter{queue: flow.NewQueue(t, now)}
}

// follow makes a new limiter count what has passed the one before it, if there was
// one, from its first call or its next adopt on.
func (l limiter) follow(before *limiter) {
	switch {
	case before == nil:
	case l.queue != nil:
		l.queue.Follow(before.predecessor())
	default:
		l.window.Follow(before.predecessor())
	}
}

func (l limiter) predecessor() flow.Predecessor {
	if l.queue != nil {
		return l.queue
	}
	return l.window
}

// inherit has a new limiter begin with what a shared one has counted.
func (l limiter) inherit(shared limiter, now clock.Instant) {
	switch {
	case l.queue != nil:
		l.queue.Inherit(shared.queue, now)
	case !shared.idle(now):
		l.window.Inherit(shared.window, now)
	}
}

// adopt goes over to newer terms.
func (l limiter) adopt(t *flow.Terms, now clock.Instant) {
	if l.queue != nil {
		l.queue.Adopt(t, now)
	} else {
		l.window.Adopt(t, now)
	}
}

// retire lets go of those who wait under a rule that is gone.
func (l limiter) retire() {
	if l.queue != nil {
		l.queue.Retire()
	}
}

func (l limiter) status(now clock.Instant) (ceiling float64, remaining int64, reset time.Duration) {
	if l.queue != nil {
		return l.queue.Status(now)
	}
	return l.window.Status(now)
}

// idle says whether the limiter holds nothing that would be missed if it were
// made anew.
func (l limiter) idle(now clock.Instant) bool {
	if l.queue != nil {
		return l.queue.Idle(now)
	}
	return l.window.Idle(now)
}

// hold is what one rule holds of one resource: the limiter, which may be common
// to many resources, and what it has refused there.
type hold struct {
	limiter
	rule     *flowRule
	adopted  *flow.Terms // by the limiter, if it is the resource's own
	refusals refusals
	promised atomic.Int64 // tokens of a window, to calls that wait in a queue
	before   uint64       // calls of the resource when the rule began to hold of it
}

// isOwn says whether the limiter is the resource's own.
func (h *hold) isOwn() bool { return h.rule.common == nil }

// newHold returns what a rule, by these terms, holds of a resource that it did not
// apply to before.
func newHold(rule *flowRule, terms *flow.Terms, r *resource, now clock.Instant) *hold {
	h := &hold{rule: rule, adopted: terms, before: r.node.Calls()}
	if rule.common != nil {
		h.limiter = *rule.common
	} else {
		h.limiter = newLimiter(terms, now)
	}
	h.refusals.about(r.name, rules.KindFlow, terms.Name(), newTally(&r.node))
	return h
}
