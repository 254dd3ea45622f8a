package core

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
)

// asking is a call of so many tokens that rules are asked about.
type asking struct {
	now      clock.Instant
	tokens   int32
	patience time.Duration // how long it can wait
	turns    *turns        // that it has; or nil
	held     []heldPlace   // in queues, that it has
}

// refuse refuses a call for a rule that demands a wait. The error tells of the
// longest wait that any of the rules demands which would refuse it now.
func (s *steps) refuse(by *refusals, wait time.Duration, a asking) *BlockError {
	if len(s.queues)+len(s.windows) > 1 {
		wait = s.longestWait(by, wait, a)
	}
	return by.refuse(wait)
}

func (s *steps) longestWait(by *refusals, wait time.Duration, a asking) time.Duration {
	for i := range s.queues {
		rule := &s.queues[i]
		if rule.refusals == by || a.has(rule.queue) {
			continue
		}
		ticket, decision := rule.queue.Expect(rule.terms, a.now, a.tokens, a.patience)
		if decision == flow.Refused {
			wait = max(wait, rule.terms.RetryAfter(ticket, a.now, a.patience))
		}
	}
	for i := range s.windows {
		rule := &s.windows[i]
		if rule.refusals != by && rule.window.Check(rule.terms, a.now, a.tokens) == flow.Refused {
			wait = max(wait, rule.window.RetryAfter(a.now, a.tokens))
		}
	}
	return wait
}

// has says whether the call has a turn of the queue or a place in it.
func (a *asking) has(queue *flow.Queue) bool {
	if a.turns != nil && a.turns.of(queue) != nil {
		return true
	}
	for i := range a.held {
		if a.held[i].place.Queue == queue {
			return true
		}
	}
	return false
}

func (r *windowRule) refuse(s *steps, a asking) *BlockError {
	return s.refuse(r.refusals, r.window.RetryAfter(a.now, a.tokens), a)
}

func (r *queueRule) refuse(s *steps, ticket flow.Ticket, a asking) *BlockError {
	return s.refuse(r.refusals, r.terms.RetryAfter(ticket, a.now, a.patience), a)
}
