package flow

import (
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Queue enforces a rule of control [Throttle]: a leaky bucket as a queue. Calls
// get turns that are never closer than the tokens they take cost at the ceiling
// of the second, first come, first served:
//
//	turn = max(arrival, last turn + tokens / ceiling · window)
//
// The queue only reckons; waiting is the caller's. A [Waiter] is told when to
// look again through its channel, and when its turn will be. It is safe for
// concurrent use; one mutex guards all of it.
type Queue struct {
	mu      sync.Mutex
	terms   *Terms
	cold    cold
	last    clock.Instant // the turn granted last
	line    line          // the head's turn is planned
	retired bool
}

// NewQueue returns a queue whose first call may go at once, stone-cold if the
// terms warm up.
func NewQueue(t *Terms, now clock.Instant) *Queue {
	return &Queue{terms: t, cold: newCold(t, now), last: longAgo}
}

// Take asks for a turn at now, for n tokens under the given terms. Passed comes
// with a ticket; Queued says that Join may get one; Refused that the wait would
// be longer than the rule's MaxWait; Outdated that the terms are.
func (q *Queue) Take(t *Terms, now clock.Instant, n int32) (Ticket, Decision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ticket, decision := q.plan(t, now, n, t.rule.MaxWait)
	if decision == Passed {
		q.grant(ticket)
	}
	return ticket, decision
}

// Join asks for a turn like Take and puts w into the queue if it has to wait
// for it, for no longer than the rule's MaxWait nor patience.
func (q *Queue) Join(t *Terms, now clock.Instant, n int32, patience time.Duration, w *Waiter) (Ticket, Decision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ticket, decision := q.plan(t, now, n, min(patience, t.rule.MaxWait))
	switch decision {
	case Passed:
		q.grant(ticket)
	case Queued:
		*w = Waiter{Wake: w.Wake, state: inQueue, tokens: n, arrived: now}
		q.line.push(w)
		if w == q.line.head {
			q.place(now) // it asks for its turn itself
		}
	}
	return ticket, decision
}

// Turn asks at now how a waiter stands: Passed with its ticket; Queued with the
// time until its turn if it is the first in the queue, else 0: it is woken when
// it has become the first; Refused if a changed rule would make it wait longer
// than it may; Outdated when the rule is gone.
func (q *Queue) Turn(now clock.Instant, w *Waiter) (Ticket, time.Duration, Decision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.advance(now)
	switch w.state {
	case granted:
		return w.ticket, 0, Passed
	case refused:
		return Ticket{}, 0, Refused
	case released:
		return Ticket{}, 0, Outdated
	}
	if w == q.line.head {
		return Ticket{}, w.ticket.turn.Sub(now), Queued
	}
	return Ticket{}, 0, Queued
}

// Leave takes a waiter that gives up at now out of the queue; those behind it move up.
// It returns false when the waiter's turn came first: the ticket is valid.
func (q *Queue) Leave(now clock.Instant, w *Waiter) (Ticket, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.state == inQueue {
		wasHead := w == q.line.head
		q.line.remove(w)
		if wasHead {
			q.promote(now)
		}
	}
	return w.ticket, w.state != granted
}

// GiveBack returns at now a turn that was not used after all. It can be given to
// another only as long as no later one was granted: those behind move up.
func (q *Queue) GiveBack(now clock.Instant, ticket Ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.last != ticket.turn {
		return
	}
	q.last = ticket.before
	q.cold.pass(q.terms, -int64(ticket.tokens), ticket.turn)
	q.promote(now)
}

// Adopt goes over to newer terms: the waiting get their turns by them.
func (q *Queue) Adopt(t *Terms, now clock.Instant) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.adopt(t, now)
}

// Retire ends the queue: its rule is gone. Those who wait are let go, Outdated.
func (q *Queue) Retire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.retired = true
	for w := q.line.head; w != nil; w = q.line.head {
		q.finish(w, released)
	}
}

// RetryAfter returns how long after now a call of n tokens that was refused
// could join the queue, if nobody else comes and it can wait as long as the
// rule allows but no longer than patience; 0 when it never can.
func (q *Queue) RetryAfter(now clock.Instant, n int32, patience time.Duration) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	ceiling := q.ceilingFor(now)
	if ceiling == 0 {
		return 0
	}
	patience = max(0, min(patience, q.terms.rule.MaxWait))
	return max(1, q.turnBehind(now, n, ceiling).Sub(now)-patience)
}

// Status returns the ceiling in force at now, in tokens per window, how many
// calls of one token that came now would get a turn within the rule's MaxWait,
// and how long it takes until that is one more. It changes nothing.
func (q *Queue) Status(now clock.Instant) (ceiling float64, room int64, reset time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	cold := q.cold // a copy, to look ahead with
	ceiling = cold.ceilingOfTurn(q.terms, now)
	if ceiling == 0 {
		return 0, 0, 0
	}
	spacing := q.terms.cost(1, ceiling)
	slack := q.terms.rule.MaxWait - q.turnBehind(now, 1, ceiling).Sub(now)
	if slack < 0 {
		return ceiling, 0, -slack
	}
	return ceiling, 1 + int64(slack/spacing), spacing - slack%spacing
}
