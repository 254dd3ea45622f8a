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

// isOne says whether there is only one rule.
func (s *steps) isOne() bool { return len(s.queues)+len(s.windows) == 1 }

// refuse refuses a call for a rule that demands a wait. The error tells of the
// longest wait that any of the rules demands which would refuse it now.
func (s *steps) refuse(by *refusals, wait time.Duration, a asking) *BlockError {
	if !s.isOne() {
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

// refuseByWindow refuses a call to which no queue applies.
func (s *steps) refuseByWindow(rule *windowRule, now clock.Instant, n int32) *BlockError {
	if s.isOne() {
		return rule.refusals.refuse(rule.window.RetryAfter(now, n))
	}
	return rule.refuse(s, asking{now: now, tokens: n})
}

func (r *windowRule) refuse(s *steps, a asking) *BlockError {
	return s.refuse(r.refusals, r.window.RetryAfter(a.now, a.tokens), a)
}

// refuseByQueue refuses a call that has neither turns nor places.
func (s *steps) refuseByQueue(
	rule *queueRule, ticket flow.Ticket, now clock.Instant, n int32, patience time.Duration,
) *BlockError {
	if s.isOne() {
		return rule.refusals.refuse(rule.terms.RetryAfter(ticket, now, patience))
	}
	return rule.refuse(s, ticket, asking{now: now, tokens: n, patience: patience})
}

func (r *queueRule) refuse(s *steps, ticket flow.Ticket, a asking) *BlockError {
	return s.refuse(r.refusals, r.terms.RetryAfter(ticket, a.now, a.patience), a)
}
