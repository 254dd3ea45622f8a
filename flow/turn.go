package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Ticket is a turn that was granted. Four words, which the compiler keeps in
// registers: 30 ns a call.
type Ticket struct {
	turn   clock.Instant
	tokens int32

	// By what it is given back. Throttle: the turn granted before it. Token bucket:
	// when the tokens were taken and, if it warms up, how many were stored ones.
	since clock.Instant
	part  float64
}

// Turn returns when the turn is; 0 of a ticket that came with Refused says that
// there can be none.
func (t Ticket) Turn() clock.Instant { return t.turn }

// plan decides on a call that comes at now, and when its turn would be, 0 if never,
// without doing anything about it.
func (q *Queue) plan(t *Terms, now clock.Instant, n int32, patience time.Duration) (turn clock.Instant, decision Decision) {
	if t.version < q.terms.version || q.retired && t.version == q.terms.version {
		return 0, Outdated
	}
	if q.before != nil {
		q.takeOver(now)
	}
	if t != q.terms {
		q.adopt(t, now)
	}
	if q.line.head != nil {
		q.advance(now)
	}
	turn, ok := q.turnOf(now, n)
	switch {
	case !ok:
		return 0, Refused
	case turn <= now && q.line.head == nil:
		return turn, Passed
	case turn.Sub(now) > patience:
		return turn, Refused
	}
	return turn, Queued
}

// turnOf returns when n tokens may go that come at now, behind all others; false
// if they never can.
func (q *Queue) turnOf(now clock.Instant, n int32) (turn clock.Instant, ok bool) {
	if q.line.head == nil {
		return q.pace.next(now, n)
	}
	return q.pace.behind(&q.line, now, n)
}

// advance grants every turn that has come by now, in order.
func (q *Queue) advance(now clock.Instant) {
	for w := q.line.head; w != nil && !w.joint && w.ticket.turn <= now; w = q.line.head {
		turn := w.ticket.turn
		w.ticket = q.grant(turn, turn, w.tokens)
		q.finish(w, granted)
		q.promote(turn)
	}
}

// promote plans the turn of the first in the queue and wakes it to wait for it.
func (q *Queue) promote(now clock.Instant) {
	q.place(now)
	if q.line.head != nil {
		q.line.head.wake()
	}
}

// place plans the turn of the first in the queue, which became the first, or got
// another turn to follow, at the given instant: not earlier than that. Who can
// have none or would have to wait longer than the rule allows is refused.
func (q *Queue) place(now clock.Instant) {
	for w := q.line.head; w != nil; w = q.line.head {
		turn, ok := q.pace.next(max(now, w.arrived), w.tokens)
		if ok && turn.Sub(w.since) <= q.terms.rule.MaxWait && (!w.joint || turn <= w.deadline) {
			w.ticket = Ticket{turn: turn}
			q.pace.delay(max(now, w.arrived), turn, w.tokens)
			return
		}
		q.finish(w, refused)
	}
}

func (q *Queue) adopt(t *Terms, now clock.Instant) {
	if q.before != nil {
		q.takeOver(now)
	}
	if t.version <= q.terms.version {
		return
	}
	q.advance(now)
	if t.rule.Origin != q.terms.rule.Origin {
		q.release() // it may be no rule for those who wait
	}
	q.pace = q.pace.adopt(t, now)
	q.terms, q.retired = t, false // a rule that was removed may come back
	if q.log != nil {
		q.log.reach = max(q.log.reach, t.reach())
	}
	if t.rule.Shadow {
		q.letGo(now)
	}
	q.promote(now)
}

// letGo grants the turns of all who wait, though they have not come yet: the rule
// does not make calls wait any longer.
func (q *Queue) letGo(now clock.Instant) {
	for w := q.line.head; w != nil; w = q.line.head {
		turn, ok := q.pace.next(now, w.tokens)
		if !ok {
			turn = now
		}
		w.ticket = q.grant(now, turn, w.tokens)
		q.finish(w, granted)
	}
}

// release lets go of those who wait, without a turn.
func (q *Queue) release() {
	for w := q.line.head; w != nil; w = q.line.head {
		q.finish(w, released)
	}
}

// finish takes a waiter out of the line and tells it how it stands.
func (q *Queue) finish(w *Waiter, state waiting) {
	q.line.remove(w)
	w.state = state
	w.wake()
}
