package core

import (
	"context"
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/stat"
)

// endless is the patience of a call whose context has no deadline.
const endless = time.Duration(math.MaxInt64)

// wait is what a call waits for: its turn in a queue, or an instant.
type wait struct {
	begun bool
	since clock.Instant
	node  *stat.Node    // where it is counted
	steps *steps        // whose windows have promised it tokens
	queue *queueRule    // in which waiter is; nil when it is in none
	freed clock.Instant // when a queue that it waited in last went
	until clock.Instant // that a check has set
	joins bool          // it is to join several queues

	waiter *flow.Waiter
	wake   func()        // called when the turn of the waiter may have come
	woken  chan struct{} // receives then, if nobody has set wake
}

// takeTurns gets the call a turn of every queue that it has none of yet. It
// returns false when that cannot go on as it is: the call has to wait, or a queue
// was outdated, for the plan is no longer the one in force.
func (v *visit) takeTurns(ctx context.Context, s *steps) (ok bool, err error) {
	if len(s.queues) == 0 {
		v.stopWaiting() // for queues that were there
		return true, nil
	}
	if len(s.queues) > 1 || len(v.held) > 0 {
		return v.takeJointTurn(ctx, s)
	}
	v.stopWaiting() // for others
	rule := &s.queues[0]
	if v.hasTurn(rule) {
		return true, nil
	}
	ticket, decision := v.takeTurn(rule, s)
	if decision == flow.Queued {
		if full := s.fullAt(v.now, ticket.Turn(), v.tokens); full != nil {
			return false, v.block(full.refuse(s, v.asking(ctx)))
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		ticket, decision = rule.queue.Join(rule.terms, v.now, v.tokens, v.patience(ctx), v.newWaiter())
	}
	switch decision {
	case flow.Passed:
		v.turns.add(turn{rule.queue, ticket, rule.terms, false})
	case flow.Refused:
		return false, v.block(rule.refuse(s, ticket, v.asking(ctx)))
	case flow.Queued:
		v.beginWait(s)
		v.wait.queue = rule
		return false, nil
	case flow.Outdated:
		return false, nil
	}
	return true, nil
}

// takeTurn takes a turn of a queue at v.now, unless a window has no room now: then it
// says Queued instead, with the turn that the call would have.
func (v *visit) takeTurn(rule *queueRule, s *steps) (flow.Ticket, flow.Decision) {
	if s.fullWindow(v.now, v.tokens) == nil {
		return rule.queue.Take(rule.terms, v.now, v.tokens)
	}
	ticket, decision := rule.queue.Expect(rule.terms, v.now, v.tokens, endless)
	if decision == flow.Passed {
		decision = flow.Queued
	}
	return ticket, decision
}

// hasTurn says whether the call has a turn under the rule. One that was granted by
// earlier terms does not count, unless the call has waited for it and the rule
// still lets calls through.
func (v *visit) hasTurn(rule *queueRule) bool {
	granted := v.turns.of(rule.queue)
	if granted == nil {
		return false
	}
	if granted.terms == rule.terms || granted.waited && rule.terms.Rule().Limit > 0 {
		return true
	}
	rule.queue.GiveBack(v.now, granted.ticket)
	v.turns.remove(granted)
	return false
}

// goOnWaiting tells whether the call still has to wait, and for how long if only
// time can end that.
func (v *visit) goOnWaiting() (after time.Duration, waits bool) {
	if v.wait.begun && v.now < v.wait.until {
		return v.wait.until.Sub(v.now), true
	}
	if len(v.held) > 0 {
		return v.keepPlaces()
	}
	rule := v.wait.queue
	if rule == nil {
		v.stopWaiting()
		return 0, false
	}
	ticket, after, decision := rule.queue.Turn(v.now, v.wait.waiter)
	if decision == flow.Queued {
		return after, true
	}
	v.wait.queue = nil // it is in the queue no longer
	v.stopWaiting()
	switch decision {
	case flow.Passed:
		v.turns.add(turn{rule.queue, ticket, rule.terms, true})
	case flow.Refused:
		v.refusedBy = rule
	}
	return 0, false
}

func (v *visit) newWaiter() *flow.Waiter {
	if v.wait.wake == nil {
		woken := make(chan struct{}, 1)
		v.wait.woken = woken
		v.wait.wake = func() {
			select {
			case woken <- struct{}{}:
			default: // it has been woken already
			}
		}
	}
	v.wait.waiter = flow.NewWaiter(v.wait.wake)
	return v.wait.waiter
}

// beginWait begins a wait for turns under these rules, or for something else if they
// are nil.
func (v *visit) beginWait(s *steps) {
	v.wait.begun, v.wait.since, v.wait.node, v.wait.steps = true, v.now, &v.resource.node, s
	if s != nil {
		s.promise(v.tokens)
	}
	v.wait.node.BeginWait()
}

// stopWaiting ends the wait, if the call waits, whether or not its turn has come.
func (v *visit) stopWaiting() {
	v.leavePlaces(0)
	if rule := v.wait.queue; rule != nil {
		if ticket, left := rule.queue.Leave(v.now, v.wait.waiter); !left {
			rule.queue.GiveBack(v.now, ticket)
		}
	}
	if v.wait.begun {
		v.wait.node.EndWait(v.wait.since, v.now)
		if v.wait.steps != nil {
			v.wait.steps.promise(-v.tokens)
		}
	}
	v.wait.begun, v.wait.queue = false, nil
}

func (v *visit) patience(ctx context.Context) time.Duration { return v.resource.engine.patience(ctx) }

// patience is how long a context lets a call wait.
func (e *Engine) patience(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return e.clock.Until(deadline)
	}
	return endless
}

// givenUp returns why a call need not wait any longer: the error of its context, or
// ErrClosed; nil when it has to.
func (e *Engine) givenUp(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.isClosed() {
		return ErrClosed
	}
	return nil
}

// pause returns when it is woken, when d has passed since now, unless d is 0, or when
// the context or the engine ends, with their error.
func (e *Engine) pause(ctx context.Context, now clock.Instant, d time.Duration, wake <-chan struct{}) error {
	var over <-chan time.Time
	if d > 0 {
		timer := clock.TimerAt(e.clock, now.Add(d))
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
