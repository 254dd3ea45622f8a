package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/pending"
	"github.com/penstock-go/penstock/internal/waitqueue"
	"github.com/penstock-go/penstock/rule"
)

// queueLimiter is one version of a rule of mode lease for which calls wait: for tokens of a
// bucket, or for their turn in a throttle.
type queueLimiter struct{ budgetLimiter }

var _ rule.Queue = (*queueLimiter)(nil)

// Acquire takes tokens for a call that need not wait. The ticket is the instant of that.
func (l *queueLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	s := l.limit
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.isInForce(c.Now) {
		return 0, rule.Stale
	}
	wait, decision := s.queue.take(c.Now, c.Tokens, c.Priority())
	switch decision {
	case rule.Pass:
		return rule.Ticket(c.Now), rule.Pass
	case rule.Block:
		s.queue.count(c.Now, c.Tokens, false)
		return rule.RetryTicket(l.retry(wait)), rule.Block
	}
	s.queue.count(c.Now, c.Tokens, !l.version.rule.Shadow)
	return 0, rule.Wait
}

// isInForce says whether calls may ask this version, which comes into force with the first
// one, unless a newer one is in force. The mutex is held.
func (l *queueLimiter) isInForce(now clock.Instant) bool {
	l.limit.change(l.version, now)
	return l.limit.versions.IsInForce(l.version.number)
}

// retry returns when a call can join that would have to wait for so long.
func (l *queueLimiter) retry(wait time.Duration) time.Duration {
	switch {
	case wait == rule.Never:
		return rule.Never
	case wait >= forever: // nothing is granted, for as long as anybody knows
		return 0
	}
	return max(1, wait-l.version.rule.MaxWait)
}

// RetryAfter returns when such a call is expected to pass or to be allowed to wait.
func (l *queueLimiter) RetryAfter(c rule.Call) time.Duration {
	s := l.limit
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.advance(c.Now)
	wait := s.queue.expect(c.Now, c.Tokens, c.Priority())
	if wait <= l.version.rule.MaxWait {
		return 0
	}
	return l.retry(wait)
}

// Join has a call wait.
func (l *queueLimiter) Join(c rule.Call, patience rule.Patience) (rule.Waiter, rule.Ticket, rule.Decision) {
	s := l.limit
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.isInForce(c.Now) {
		return nil, 0, rule.Stale
	}
	wait, decision := s.queue.take(c.Now, c.Tokens, c.Priority())
	if decision == rule.Pass {
		return nil, rule.Ticket(c.Now), rule.Pass
	}
	s.queue.count(c.Now, c.Tokens, true)
	s.queue.counted = 0
	deadline := patience.Since.Add(l.version.rule.MaxWait)
	if decision == rule.Block || c.Now.Add(wait) > min(deadline, patience.Until) {
		return nil, 0, rule.Block
	}
	w := &fleetWaiter{
		limit: s, level: c.Priority().Level(), tokens: c.Tokens,
		arrived: c.Now, since: patience.Since, deadline: deadline, counted: c.Now,
	}
	w.Begin(w, patience.Wake)
	s.queue.push(w)
	return w, 0, rule.Wait
}

// GiveBack gives back what the call took, to those that wait.
func (l *queueLimiter) GiveBack(_ clock.Instant, t rule.Ticket, tokens int32) {
	l.budget.GiveBack(clock.Instant(t), tokens)
	l.limit.queue.wakeHead()
}

// Settle corrects what a call took. A throttle puts off the next call by what one took more.
func (l *queueLimiter) Settle(now, _ clock.Instant, t rule.Ticket, tokens int32) {
	l.budget.Settle(clock.Instant(t), tokens)
	l.limit.mu.Lock()
	defer l.limit.mu.Unlock()
	l.limit.queue.owe(now, tokens)
	l.limit.queue.wakeHead()
}

// fleetWaiter is a call that waits for tokens which the instance leases.
type fleetWaiter struct {
	pending.Call
	limit  *leasedLimit
	level  int
	tokens int32

	// The mutex of the limit guards what follows.
	arrived  clock.Instant // in this queue
	since    clock.Instant // it waits, for this rule or for another
	counted  clock.Instant // when it counted as demand last
	deadline clock.Instant // the last instant at which it may pass
	place    waitqueue.Node[fleetWaiter]
}

// Look implements [pending.Place].
func (w *fleetWaiter) Look(now clock.Instant) time.Duration {
	w.limit.mu.Lock()
	defer w.limit.mu.Unlock()
	q := &w.limit.queue
	if w.Waits() {
		q.advance(now)
	}
	switch {
	case !w.Waits():
		return 0
	case w.deadline <= now: // what passes at this instant has passed
		q.refuse(w)
		q.wakeNewHead()
		return 0
	case w == q.waiters.First():
		return q.untilHeadPasses(w, now)
	}
	return w.deadline.Sub(now)
}

// Withdraw implements [pending.Place].
func (w *fleetWaiter) Withdraw(now clock.Instant) {
	w.limit.mu.Lock()
	defer w.limit.mu.Unlock()
	if q := &w.limit.queue; w.Waits() {
		q.remove(w)
		w.End()
		q.advance(now)
	}
}

// GiveBack implements [pending.Place].
func (w *fleetWaiter) GiveBack(_ clock.Instant, taken rule.Ticket) {
	q := &w.limit.queue
	q.budget.GiveBack(clock.Instant(taken), w.tokens)
	q.wakeHead()
}
