package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Ticket is a turn that was granted.
type Ticket struct {
	turn, before clock.Instant // before: the turn granted before it
	tokens       int32
}

// plan decides on a call that comes at now, without doing anything about it.
func (q *Queue) plan(t *Terms, now clock.Instant, n int32, patience time.Duration) (Ticket, Decision) {
	if q.retired || t.version < q.terms.version {
		return Ticket{}, Outdated
	}
	q.adopt(t, now)
	q.advance(now)
	ceiling := q.ceilingFor(now)
	if ceiling == 0 {
		return Ticket{}, Refused
	}
	turn := q.turnBehind(now, n, ceiling)
	switch {
	case q.line.head == nil && turn <= now:
		return Ticket{turn: turn, before: q.last, tokens: n}, Passed
	case turn.Sub(now) > patience:
		return Ticket{}, Refused
	}
	return Ticket{}, Queued
}

// ceilingFor returns the ceiling that a call arriving at now is planned with.
// While others wait, it is that of the second in which the first of them became
// the first: seconds are entered in the order of turns.
func (q *Queue) ceilingFor(now clock.Instant) float64 {
	if q.line.head == nil {
		return q.cold.ceilingOfTurn(q.terms, max(q.last, now))
	}
	return q.cold.ceilingOfTurn(q.terms, q.last)
}

// turnBehind returns the turn of a call of n tokens that comes at now.
func (q *Queue) turnBehind(now clock.Instant, n int32, ceiling float64) clock.Instant {
	if q.line.head == nil {
		return max(now, q.last.Add(q.terms.cost(int64(n), ceiling)))
	}
	return max(now, q.line.head.ticket.turn.Add(q.terms.cost(q.line.behind+int64(n), ceiling)))
}

// advance grants every turn that has come by now, in order.
func (q *Queue) advance(now clock.Instant) {
	for w := q.line.head; w != nil && w.ticket.turn <= now; w = q.line.head {
		q.grant(w.ticket)
		q.finish(w, granted)
		q.promote(q.last)
	}
}

func (q *Queue) grant(ticket Ticket) {
	q.cold.ceilingOfTurn(q.terms, ticket.turn) // enter the second that it falls in
	q.cold.pass(q.terms, int64(ticket.tokens), ticket.turn)
	q.last = ticket.turn
}

// promote plans the turn of the first in the queue and wakes it to wait for it.
func (q *Queue) promote(now clock.Instant) {
	q.place(now)
	if q.line.head != nil {
		q.line.head.wake()
	}
}

// place plans the turn of the first in the queue, which became the first, or got
// another turn to follow, at the given instant: at the ceiling of that second,
// and not earlier. Who would have to wait longer than the rule allows is
// refused.
func (q *Queue) place(now clock.Instant) {
	for w := q.line.head; w != nil; w = q.line.head {
		since := max(now, w.arrived)
		if ceiling := q.cold.ceilingOfTurn(q.terms, since); ceiling > 0 {
			turn := max(since, q.last.Add(q.terms.cost(int64(w.tokens), ceiling)))
			if turn.Sub(w.arrived) <= q.terms.rule.MaxWait {
				w.ticket = Ticket{turn: turn, before: q.last, tokens: w.tokens}
				return
			}
		}
		q.finish(w, refused)
	}
}

func (q *Queue) adopt(t *Terms, now clock.Instant) {
	if t.version <= q.terms.version {
		return
	}
	q.advance(now)
	q.cold.adopt(q.terms, t, now)
	q.terms = t
	q.promote(now)
}

// finish takes a waiter out of the line and tells it how it stands.
func (q *Queue) finish(w *Waiter, state waiting) {
	q.line.remove(w)
	w.state = state
	w.wake()
}
