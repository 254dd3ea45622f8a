package core

import (
	"context"
	"math"
	"time"

	"github.com/penstock-go/penstock/flow"
)

// endless is the patience of a call whose context has no deadline.
const endless = time.Duration(math.MaxInt64)

// waitForTurns gets the call a turn of every queue in the plan that it has none
// of yet, one queue after the other. It returns false if a queue was outdated:
// the plan is no longer the one in force.
func (v *visit) waitForTurns(ctx context.Context, p *plan) (ok bool, err error) {
	for i := range p.queues {
		rule := &p.queues[i]
		if v.turns.has(rule.queue) {
			continue
		}
		ticket, decision := rule.queue.Take(rule.terms, v.now, v.tokens)
		if decision == flow.Queued {
			ticket, decision, err = v.wait(ctx, rule)
		}
		switch {
		case err != nil:
			return false, err
		case decision == flow.Refused:
			return false, v.block(rule.refuse(v.now, v.tokens, v.patience(ctx)))
		case decision == flow.Outdated:
			return false, nil
		}
		v.turns.add(rule.queue, ticket)
	}
	return true, nil
}

// wait joins a queue and waits for the turn. The error is that of the context,
// or ErrClosed.
func (v *visit) wait(ctx context.Context, rule *queueRule) (flow.Ticket, flow.Decision, error) {
	if err := ctx.Err(); err != nil {
		return flow.Ticket{}, 0, err
	}
	waiter := flow.NewWaiter()
	ticket, decision := rule.queue.Join(rule.terms, v.now, v.tokens, v.patience(ctx), waiter)
	if decision != flow.Queued {
		return ticket, decision, nil
	}
	v.beginWait()
	defer v.endWait()
	for {
		ticket, until, decision := rule.queue.Turn(v.now, waiter)
		if decision != flow.Queued {
			return ticket, decision, nil
		}
		err := v.resource.engine.pause(ctx, until, waiter.Wake)
		v.now = v.resource.engine.clock.Now()
		if err != nil {
			if ticket, left := rule.queue.Leave(v.now, waiter); !left {
				rule.queue.GiveBack(v.now, ticket)
			}
			return flow.Ticket{}, 0, err
		}
	}
}

// delay waits for d because a check said so.
func (v *visit) delay(ctx context.Context, d time.Duration) error {
	v.beginWait()
	defer v.endWait()
	err := v.resource.engine.pause(ctx, d, nil)
	v.now = v.resource.engine.clock.Now()
	return err
}

func (v *visit) beginWait() {
	v.waitingSince = v.now
	v.resource.node.BeginWait()
}

func (v *visit) endWait() { v.resource.node.EndWait(v.waitingSince, v.now) }

// patience is how long the context lets the call wait.
func (v *visit) patience(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return v.resource.engine.clock.Until(deadline)
	}
	return endless
}

// pause returns when it is woken, when d has passed, unless d is 0, or when the
// context or the engine ends, with their error.
func (e *Engine) pause(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	var over <-chan time.Time
	if d > 0 {
		timer := e.clock.NewTimer(d)
		defer timer.Stop()
		over = timer.C()
	}
	select {
	case <-wake:
		return nil
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-e.closed:
		return ErrClosed
	}
}
