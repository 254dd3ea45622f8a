package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// plan decides on a call of somebody that comes at now, and returns when it
// could pass, 0 if never. It takes nothing.
func (q *queue) plan(
	r *compiledRule, now clock.Instant, n int32, who *caller, patience time.Duration,
) (passAt clock.Instant, decision rule.Decision) {
	r = r.inForce()
	if r != q.compiled && r.isBefore(q.compiled) || q.retired && r.version == q.compiled.version {
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
	passAt, ok := q.passTimeOf(now, n, who)
	switch {
	case !ok:
		return 0, rule.Block
	case passAt <= now && (q.waiters.head == nil || q.waiters.overtakesHead(who.priority)):
		return passAt, rule.Pass
	case passAt.Sub(now) > patience:
		return passAt, rule.Block
	}
	return passAt, rule.Wait
}

// passTimeOf returns when n tokens that come at now can pass, behind the calls that wait
// and are served before one of somebody; false if they never can.
func (q *queue) passTimeOf(now clock.Instant, n int32, who *caller) (passAt clock.Instant, ok bool) {
	head := q.waiters.head
	switch {
	case head == nil:
		return q.schedule.next(now, n)
	case q.waiters.overtakesHead(who.priority):
		return q.schedule.nextInstead(now, n)
	}
	return q.schedule.nextBehind(head, q.waiters.between(who), now, n)
}

// overtake notes that a call has passed at now that came last, and plans the calls anew
// that wait and are less important.
func (q *queue) overtake(now clock.Instant) {
	q.waiters.overtake()
	q.promote(now)
}

// push has a call of n tokens join the queue at now.
func (q *queue) push(w *waiter, now clock.Instant, n int32) {
	w.tokens, w.arrived = n, now
	if q.waiters.push(w) {
		q.wakeAll() // from now on they can be overtaken, and have to look when to give up
	}
	if w == q.waiters.head {
		q.place(now) // which is not planned by another call
	}
}

func (q *queue) wakeAll() {
	for w := range q.waiters.order.All() {
		w.Wake()
	}
}

// advance lets the waiting calls pass whose time has come by now, in order.
func (q *queue) advance(now clock.Instant) {
	for w := q.waiters.head; w != nil && w.turn.at <= now; w = q.waiters.head {
		passAt := w.turn.at
		q.serve(w, q.grant(passAt, passAt, w.tokens))
		q.promote(passAt)
	}
}

// promote plans when the first call in the queue passes, and wakes it to wait for that.
func (q *queue) promote(now clock.Instant) {
	q.place(now)
	if q.waiters.head != nil {
		q.waiters.head.Wake()
	}
}

// place plans when the first call in the queue passes, which has become the first, or
// has another call to follow, at the given instant: not earlier than that. A call that
// can never pass, or would have to wait longer than the rule allows, is refused.
func (q *queue) place(now clock.Instant) {
	for w := q.waiters.head; w != nil; w = q.waiters.head {
		passAt, ok := q.schedule.next(max(now, w.arrived), w.tokens)
		if ok && passAt.Sub(w.arrived) <= q.compiled.rule.MaxWait {
			w.turn = turn{at: passAt}
			q.schedule.delay(max(now, w.arrived), passAt, w.tokens)
			return
		}
		q.refuse(w)
	}
}

func (q *queue) adopt(r *compiledRule, now clock.Instant) {
	if q.before != nil {
		q.takeOver(now)
	}
	if !q.compiled.isBefore(r) {
		return
	}
	q.advance(now)
	if r.rule.Origin != q.compiled.rule.Origin {
		q.releaseAll() // it may be no rule for those who wait
	}
	q.schedule = q.schedule.adopt(r, now)
	q.waiters.order.ShareFairly(r.rule.remembered(), 0)
	q.compiled, q.retired = r, false // a rule that was removed may come back
	if q.log != nil {
		q.log.reach = max(q.log.reach, r.reach())
	}
	if r.rule.Shadow {
		q.admitAll(now)
	}
	q.promote(now)
}

// admitAll grants all waiting calls their turns at now, before their time: the
// rule does not make calls wait any longer.
func (q *queue) admitAll(now clock.Instant) {
	for w := q.waiters.head; w != nil; w = q.waiters.head {
		passAt, ok := q.schedule.next(now, w.tokens)
		if !ok {
			passAt = now
		}
		q.serve(w, q.grant(now, passAt, w.tokens))
	}
}

// releaseAll takes all calls out of the queue, without turns.
func (q *queue) releaseAll() {
	for w := q.waiters.head; w != nil; w = q.waiters.head {
		q.waiters.remove(w, false)
		w.Release()
		w.Wake()
	}
}

// serve takes a waiter out of the queue that passes, with its turn, and wakes it.
func (q *queue) serve(w *waiter, t turn) {
	charge := q.waiters.remove(w, true)
	if q.compiled.rule.Newcomers == rule.NewcomersHalf && q.tenants != nil {
		q.tenants.known.Add(charge, t.at)
	}
	w.turn = t
	w.Grant(t.ticket(q.compiled))
	w.Wake()
}

// refuse takes a waiter out of the queue that may not wait any longer, and wakes it.
func (q *queue) refuse(w *waiter) {
	q.waiters.remove(w, false)
	w.Refuse()
	w.Wake()
}
