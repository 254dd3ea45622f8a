package flow

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/tenants"
	"github.com/penstock-go/penstock/rule"
)

// ruleQueue is a ruleLimiter of a rule with a queue, in which calls wait.
type ruleQueue struct{ *ruleLimiter }

var _ rule.Queue = (*ruleQueue)(nil)

// endless is the patience of a call whose context has no deadline.
const endless = time.Duration(math.MaxInt64)

// Acquire takes what the call takes if it need not wait. A shadow rule lets no call wait: it
// takes a later place.
func (l *ruleQueue) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	if l.compiled.rule.Shadow {
		return l.ruleLimiter.Acquire(c)
	}
	var who caller
	l.identify(&who, &c)
	turn, decision := l.queue.take(l.compiled, c.Now, c.Tokens, &who)
	if l.fairness != nil && decision == rule.Pass {
		l.fairness.met(&who, &c)
	}
	return l.queue.answer(l.compiled, turn, decision, c.Now, endless)
}

// Join has a call wait, for as long as the rule and the patience of the call let it.
func (l *ruleQueue) Join(c rule.Call, patience rule.Patience) (rule.Waiter, rule.Ticket, rule.Decision) {
	w := &ruleWaiter{queue: l.queue}
	w.Begin(w, patience.Wake)
	l.identify(&w.caller, &c)
	if l.fairness != nil {
		w.tenant = tenants.Kept(c.Attribute)
	}
	longest := patience.Until.Sub(c.Now)
	turn, decision := l.queue.Join(l.compiled, c.Now, c.Tokens, longest, &w.waiter)
	if decision == rule.Wait {
		return w, 0, decision
	}
	ticket, decision := l.queue.answer(l.compiled, turn, decision, c.Now, longest)
	return nil, ticket, decision
}

// ruleWaiter is a call that waits in the queue of a rule.
type ruleWaiter struct {
	waiter
	queue *queue
}

// Look implements [pending.Place].
func (w *ruleWaiter) Look(now clock.Instant) time.Duration { return w.queue.look(now, &w.waiter) }

// Withdraw implements [pending.Place].
func (w *ruleWaiter) Withdraw(now clock.Instant) { w.queue.withdraw(now, &w.waiter) }

// GiveBack implements [pending.Place].
func (w *ruleWaiter) GiveBack(now clock.Instant, _ rule.Ticket) { w.queue.GiveBack(now, w.turn) }

// Poll is that of the call; one that is refused learns when it can join again.
func (w *ruleWaiter) Poll(now clock.Instant) (rule.Ticket, time.Duration, rule.Decision) {
	ticket, after, decision := w.waiter.Poll(now)
	if decision == rule.Block {
		ticket = rule.RetryTicket(w.queue.retryRefused(now, w.tokens, &w.caller, endless))
	}
	return ticket, after, decision
}

// answer returns what a limiter answers for a queue: with Wait the instant at which the call would
// pass, with Block when a call of that patience can join.
func (q *queue) answer(
	r *compiledRule, turn turn, decision rule.Decision, now clock.Instant, patience time.Duration,
) (rule.Ticket, rule.Decision) {
	switch decision {
	case rule.Pass:
		return turn.ticket(r), decision
	case rule.Wait:
		return rule.Ticket(turn.at), decision
	case rule.Block:
		return rule.RetryTicket(r.RetryAfter(turn, now, patience)), decision
	}
	return 0, decision
}

// ticket is the instant at which the tokens of a turn were taken. A throttle takes none, and may
// grant an instant to come: that is the ticket.
func (t turn) ticket(r *compiledRule) rule.Ticket {
	if r.rule.Algorithm == Throttle {
		return rule.Ticket(t.at)
	}
	return rule.Ticket(t.undoAt)
}

// recentTurns are the latest turns that a queue has granted. Calls have no more of theirs than the
// ticket; what it takes to undo one is kept for as long as it is likely to matter: a throttle undoes
// the last one alone.
type recentTurns struct {
	turns [8]turn
	next  uint8
}

func (l *recentTurns) add(t turn) {
	l.turns[l.next%uint8(len(l.turns))] = t
	l.next++
}

// of returns the turn of a ticket of so many tokens. Of one that is not known any more it is what
// the ticket says.
func (l *recentTurns) of(ticket rule.Ticket, tokens int32, r *compiledRule) turn {
	for i := range l.turns {
		if t := &l.turns[i]; t.tokens == tokens && t.ticket(r) == ticket {
			return *t
		}
	}
	return turn{at: clock.Instant(ticket), tokens: tokens, undoAt: clock.Instant(ticket)}
}

// giveBackTicket is GiveBack for a ticket.
func (q *queue) giveBackTicket(now clock.Instant, ticket rule.Ticket, tokens int32) {
	q.mu.Lock()
	turn := q.turns.of(ticket, tokens, q.compiled)
	q.mu.Unlock()
	q.GiveBack(now, turn)
}
