package flow

import (
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Queue enforces a rule that may make calls wait: the line of those who wait,
// first come, first served, and the pace at which they go. That is even spacing
// for a throttle,
//
//	turn = max(arrival, last turn + tokens / ceiling · window)
//
// and for a token bucket as many tokens as it holds, then as they flow in.
//
// The queue only reckons; waiting is the caller's. A [Waiter] is told when to
// look again, and when its turn will be. It is safe for concurrent use; one mutex
// guards all of it.
type Queue struct {
	mu      sync.Mutex
	terms   *Terms
	pace    pace
	line    line // the head's turn is planned
	retired bool

	log    *passLog    // of a rule that counted in another way before; else nil
	before predecessor // to take over from, with the first call; else nil
}

// NewQueue returns a queue that nothing has gone through yet: the first call of
// a throttle may go at once, a token bucket is full. It is stone-cold if the
// terms warm up.
func NewQueue(t *Terms, now clock.Instant) *Queue {
	return &Queue{terms: t, pace: newPace(t, now)}
}

// Take asks for a turn at now, for n tokens under the given terms. Passed comes
// with a ticket; Queued says that Join may get one; Refused that the wait would
// be longer than the rule's MaxWait, with a ticket for [Terms.RetryAfter]; Outdated
// that the terms are.
func (q *Queue) Take(t *Terms, now clock.Instant, n int32) (Ticket, Decision) {
	return q.take(t, now, n, t.rule.MaxWait)
}

// take is Take for a call that waits no longer than maxWait, which is the rule's
// MaxWait or shorter.
func (q *Queue) take(t *Terms, now clock.Instant, n int32, maxWait time.Duration) (Ticket, Decision) {
	q.mu.Lock()
	turn, decision := q.plan(t, now, n, maxWait)
	ticket := Ticket{turn: turn}
	switch decision {
	case Passed:
		ticket = q.grant(now, turn, n)
	case Refused, Queued:
		q.pace.delay(now, turn, n)
	}
	q.mu.Unlock() // not deferred: 2 ns
	return ticket, decision
}

// expect says what Join would say to such a call, and takes nothing: the ticket
// tells when the turn would be.
func (q *Queue) expect(t *Terms, now clock.Instant, n int32, patience time.Duration) (Ticket, Decision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	turn, decision := q.plan(t, now, n, min(patience, t.rule.MaxWait))
	return Ticket{turn: turn}, decision
}

// Join asks for a turn like Take and puts w into the queue if it has to wait
// for it, for no longer than the rule's MaxWait nor patience.
func (q *Queue) Join(t *Terms, now clock.Instant, n int32, patience time.Duration, w *Waiter) (Ticket, Decision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	turn, decision := q.plan(t, now, n, min(patience, t.rule.MaxWait))
	switch decision {
	case Passed:
		return q.grant(now, turn, n), Passed
	case Refused:
		q.pace.delay(now, turn, n)
	case Queued:
		q.pace.delay(now, turn, n)
		*w = Waiter{wake: w.wake, state: inQueue, tokens: n, arrived: now, since: now}
		q.line.push(w)
		if w == q.line.head {
			q.place(now) // it asks for its turn itself
		}
	}
	return Ticket{turn: turn}, decision
}

// Reserve takes a turn for a call that does not wait for it, because its rule only
// says what it would do: Passed if the turn, perhaps a later one, is within the
// rule's MaxWait; Refused or Outdated. Whoever still waits may go at once.
func (q *Queue) Reserve(t *Terms, now clock.Instant, n int32) Decision {
	_, decision := q.reserve(t, now, n)
	return decision
}

// reserve is Reserve, and returns when the tokens were taken.
func (q *Queue) reserve(t *Terms, now clock.Instant, n int32) (taken clock.Instant, decision Decision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	turn, decision := q.plan(t, now, n, t.rule.MaxWait)
	switch {
	case decision == Refused || decision == Outdated:
		return 0, decision
	case q.line.head != nil:
		q.letGo(now)
		turn, _ = q.pace.next(now, n)
	}
	return q.grant(now, turn, n).since, Passed
}

// Turn asks at now how a waiter stands: Passed with its ticket; Queued with the
// time until its turn if it is the first in the queue, else 0: it is woken when
// it has become the first; Refused if a changed rule would make it wait longer
// than it may; Outdated when the rule is gone or has become one for other calls.
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
// It returns false when the waiter's turn came first: the ticket is valid. Turns that
// have come by now are granted, whoever has asked for them.
func (q *Queue) Leave(now clock.Instant, w *Waiter) (Ticket, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.advance(now)
	if w.state == inQueue {
		wasHead := w == q.line.head
		q.line.remove(w)
		if wasHead {
			q.promote(now)
		}
	}
	return w.ticket, w.state != granted
}

// GiveBack returns at now a turn that was not used after all; those behind move
// up. A token bucket gets its tokens back. The turn of a throttle can be given to
// another only as long as no later one was granted.
func (q *Queue) GiveBack(now clock.Instant, ticket Ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.advance(now)
	if q.log != nil {
		q.log.giveBack(ticket.turn, int64(ticket.tokens))
	}
	if q.pace.takeBack(ticket) {
		q.promote(now)
	}
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
	q.release()
}

// RetryAfter returns how long after now a call of n tokens that was refused
// could join the queue, if nobody else comes and it can wait as long as the
// rule allows but no longer than patience; [Never] when it cannot.
func (q *Queue) RetryAfter(now clock.Instant, n int32, patience time.Duration) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	turn, _ := q.turnOf(now, n)
	return q.terms.RetryAfter(Ticket{turn: turn}, now, patience)
}

// RetryAfter is [Queue.RetryAfter] for a call that the queue refused at now, under
// these terms and with that ticket. The queue is not asked again, which is 15 ns.
func (t *Terms) RetryAfter(refused Ticket, now clock.Instant, patience time.Duration) time.Duration {
	if refused.turn == 0 {
		return Never
	}
	patience = max(0, min(patience, t.rule.MaxWait))
	return max(1, refused.turn.Sub(now)-patience)
}

// Status returns the ceiling in force at now, in tokens per window; how many calls
// of one token that came now, one after the other, would get a turn within the
// rule's MaxWait; and how long it takes until that is more if nobody comes, 0 if it
// never is, to within a nanosecond for each call that waits. It grants turns that have come by now, and changes nothing else.
func (q *Queue) Status(now clock.Instant) (ceiling float64, room int64, reset time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.advance(now)
	return q.pace.status(&q.line, now, q.terms.rule.MaxWait)
}
