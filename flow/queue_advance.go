package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Reservation is a turn that was granted. Four words, which the compiler keeps in
// registers: 30 ns a call.
type Reservation struct {
	at     clock.Instant
	tokens int32

	// By what it is given back. Throttle: the turn granted before it. Token bucket:
	// when the tokens were taken and, if it warms up, how many were stored ones.
	undoAt     clock.Instant
	undoAmount float64
}

// Time returns when the turn is; 0 of a ticket that came with Refused says that
// there can be none.
func (t Reservation) Time() clock.Instant { return t.at }

// plan decides on a call that comes at now, and when its turn would be, 0 if never,
// without doing anything about it.
func (q *Queue) plan(r *Compiled, now clock.Instant, n int32, patience time.Duration) (passAt clock.Instant, decision rule.Decision) {
	if r.version < q.compiled.version || q.retired && r.version == q.compiled.version {
		return 0, rule.Stale
	}
	if q.before != nil {
		q.takeOver(now)
	}
	if r != q.compiled {
		q.adopt(r, now)
	}
	if q.waiters.head != nil {
		q.advance(now)
	}
	passAt, ok := q.passTimeOf(now, n)
	switch {
	case !ok:
		return 0, rule.Block
	case passAt <= now && q.waiters.head == nil:
		return passAt, rule.Pass
	case passAt.Sub(now) > patience:
		return passAt, rule.Block
	}
	return passAt, rule.Wait
}

// passTimeOf returns when n tokens may go that come at now, behind all others; false
// if they never can.
func (q *Queue) passTimeOf(now clock.Instant, n int32) (passAt clock.Instant, ok bool) {
	if q.waiters.head == nil {
		return q.schedule.next(now, n)
	}
	return q.schedule.nextBehind(&q.waiters, now, n)
}

// advance grants every turn that has come by now, in order.
func (q *Queue) advance(now clock.Instant) {
	for w := q.waiters.head; w != nil && !w.joint && w.reservation.at <= now; w = q.waiters.head {
		passAt := w.reservation.at
		w.reservation = q.grant(passAt, passAt, w.tokens)
		q.finish(w, granted)
		q.promote(passAt)
	}
}

// promote plans the turn of the first in the queue and wakes it to wait for it.
func (q *Queue) promote(now clock.Instant) {
	q.place(now)
	if q.waiters.head != nil {
		q.waiters.head.wake()
	}
}

// place plans the turn of the first in the queue, which became the first, or got
// another turn to follow, at the given instant: not earlier than that. Who can
// have none or would have to wait longer than the rule allows is refused.
func (q *Queue) place(now clock.Instant) {
	for w := q.waiters.head; w != nil; w = q.waiters.head {
		passAt, ok := q.schedule.next(max(now, w.arrived), w.tokens)
		if ok && passAt.Sub(w.since) <= q.compiled.rule.MaxWait && (!w.joint || passAt <= w.deadline) {
			w.reservation = Reservation{at: passAt}
			q.schedule.delay(max(now, w.arrived), passAt, w.tokens)
			return
		}
		q.finish(w, refused)
	}
}

func (q *Queue) adopt(r *Compiled, now clock.Instant) {
	if q.before != nil {
		q.takeOver(now)
	}
	if r.version <= q.compiled.version {
		return
	}
	q.advance(now)
	if r.rule.Origin != q.compiled.rule.Origin {
		q.releaseAll() // it may be no rule for those who wait
	}
	q.schedule = q.schedule.adopt(r, now)
	q.compiled, q.retired = r, false // a rule that was removed may come back
	if q.log != nil {
		q.log.reach = max(q.log.reach, r.reach())
	}
	if r.rule.Shadow {
		q.admitAll(now)
	}
	q.promote(now)
}

// admitAll grants the turns of all who wait, though they have not come yet: the rule
// does not make calls wait any longer.
func (q *Queue) admitAll(now clock.Instant) {
	for w := q.waiters.head; w != nil; w = q.waiters.head {
		passAt, ok := q.schedule.next(now, w.tokens)
		if !ok {
			passAt = now
		}
		w.reservation = q.grant(now, passAt, w.tokens)
		q.finish(w, granted)
	}
}

// releaseAll lets go of those who wait, without a turn.
func (q *Queue) releaseAll() {
	for w := q.waiters.head; w != nil; w = q.waiters.head {
		q.finish(w, released)
	}
}

// finish takes a waiter out of the line and tells it how it stands.
func (q *Queue) finish(w *Waiter, state waiterState) {
	q.waiters.remove(w)
	w.state = state
	w.wake()
}
