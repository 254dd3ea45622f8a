package flow

import (
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
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
	mu       sync.Mutex
	compiled *Compiled
	schedule schedule
	waiters  waiterList // the head's turn is planned
	retired  bool

	log    *passLog    // of a rule that counted in another way before; else nil
	before predecessor // to take over from, with the first call; else nil
}

// NewQueue returns a queue that nothing has gone through yet: the first call of
// a throttle may go at once, a token bucket is full. It is stone-cold if the
// terms warm up.
func NewQueue(r *Compiled, now clock.Instant) *Queue {
	return &Queue{compiled: r, schedule: newSchedule(r, now)}
}

// Take asks for a turn at now, for n tokens under the given terms. Passed comes
// with a ticket; Queued says that Join may get one; Refused that the wait would
// be longer than the rule's MaxWait, with a ticket for [Terms.RetryAfter]; Outdated
// that the terms are.
func (q *Queue) Take(r *Compiled, now clock.Instant, n int32) (Reservation, rule.Decision) {
	return q.take(r, now, n, r.rule.MaxWait)
}

// take is Take for a call that waits no longer than maxWait, which is the rule's
// MaxWait or shorter.
func (q *Queue) take(r *Compiled, now clock.Instant, n int32, maxWait time.Duration) (Reservation, rule.Decision) {
	q.mu.Lock()
	passAt, decision := q.plan(r, now, n, maxWait)
	reservation := Reservation{at: passAt}
	switch decision {
	case rule.Pass:
		reservation = q.grant(now, passAt, n)
	case rule.Block, rule.Wait:
		q.schedule.delay(now, passAt, n)
	}
	q.mu.Unlock() // not deferred: 2 ns
	return reservation, decision
}

// expect says what Join would say to such a call, and takes nothing: the ticket
// tells when the turn would be.
func (q *Queue) expect(r *Compiled, now clock.Instant, n int32, patience time.Duration) (Reservation, rule.Decision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	passAt, decision := q.plan(r, now, n, min(patience, r.rule.MaxWait))
	return Reservation{at: passAt}, decision
}

// Join asks for a turn like Take and puts w into the queue if it has to wait
// for it, for no longer than the rule's MaxWait nor patience.
func (q *Queue) Join(r *Compiled, now clock.Instant, n int32, patience time.Duration, w *Waiter) (Reservation, rule.Decision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	passAt, decision := q.plan(r, now, n, min(patience, r.rule.MaxWait))
	switch decision {
	case rule.Pass:
		return q.grant(now, passAt, n), rule.Pass
	case rule.Block:
		q.schedule.delay(now, passAt, n)
	case rule.Wait:
		q.schedule.delay(now, passAt, n)
		*w = Waiter{wake: w.wake, state: queued, tokens: n, arrived: now, since: now}
		q.waiters.push(w)
		if w == q.waiters.head {
			q.place(now) // it asks for its turn itself
		}
	}
	return Reservation{at: passAt}, decision
}

// Reserve takes a turn for a call that does not wait for it, because its rule only
// says what it would do: Passed if the turn, perhaps a later one, is within the
// rule's MaxWait; Refused or Outdated. Whoever still waits may go at once.
func (q *Queue) Reserve(r *Compiled, now clock.Instant, n int32) rule.Decision {
	_, decision := q.reserve(r, now, n)
	return decision
}

// reserve is Reserve, and returns when the tokens were taken.
func (q *Queue) reserve(r *Compiled, now clock.Instant, n int32) (taken clock.Instant, decision rule.Decision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	passAt, decision := q.plan(r, now, n, r.rule.MaxWait)
	switch {
	case decision == rule.Block || decision == rule.Stale:
		return 0, decision
	case q.waiters.head != nil:
		q.admitAll(now)
		passAt, _ = q.schedule.next(now, n)
	}
	return q.grant(now, passAt, n).undoAt, rule.Pass
}

// Poll asks at now how a waiter stands: Passed with its ticket; Queued with the
// time until its turn if it is the first in the queue, else 0: it is woken when
// it has become the first; Refused if a changed rule would make it wait longer
// than it may; Outdated when the rule is gone or has become one for other calls.
func (q *Queue) Poll(now clock.Instant, w *Waiter) (Reservation, time.Duration, rule.Decision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.advance(now)
	switch w.state {
	case granted:
		return w.reservation, 0, rule.Pass
	case refused:
		return Reservation{}, 0, rule.Block
	case released:
		return Reservation{}, 0, rule.Stale
	}
	if w == q.waiters.head {
		return Reservation{}, w.reservation.at.Sub(now), rule.Wait
	}
	return Reservation{}, 0, rule.Wait
}

// Leave takes a waiter that gives up at now out of the queue; those behind it move up.
// It returns false when the waiter's turn came first: the ticket is valid. Turns that
// have come by now are granted, whoever has asked for them.
func (q *Queue) Leave(now clock.Instant, w *Waiter) (Reservation, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.advance(now)
	if w.state == queued {
		wasHead := w == q.waiters.head
		q.waiters.remove(w)
		if wasHead {
			q.promote(now)
		}
	}
	return w.reservation, w.state != granted
}

// GiveBack returns at now a turn that was not used after all; those behind move
// up. A token bucket gets its tokens back. The turn of a throttle can be given to
// another only as long as no later one was granted.
func (q *Queue) GiveBack(now clock.Instant, reservation Reservation) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.advance(now)
	if q.log != nil {
		q.log.giveBack(reservation.at, int64(reservation.tokens))
	}
	if q.schedule.takeBack(reservation) {
		q.promote(now)
	}
}

// Adopt goes over to newer terms: the waiting get their turns by them.
func (q *Queue) Adopt(r *Compiled, now clock.Instant) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.adopt(r, now)
}

// Retire ends the queue: its rule is gone. Those who wait are let go, Outdated.
func (q *Queue) Retire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.retired = true
	q.releaseAll()
}

// RetryAfter returns how long after now a call of n tokens that was refused
// could join the queue, if nobody else comes and it can wait as long as the
// rule allows but no longer than patience; [Never] when it cannot.
func (q *Queue) RetryAfter(now clock.Instant, n int32, patience time.Duration) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	passAt, _ := q.passTimeOf(now, n)
	return q.compiled.RetryAfter(Reservation{at: passAt}, now, patience)
}

// RetryAfter is [Queue.RetryAfter] for a call that the queue refused at now, under
// these terms and with that ticket. The queue is not asked again, which is 15 ns.
func (r *Compiled) RetryAfter(refused Reservation, now clock.Instant, patience time.Duration) time.Duration {
	if refused.at == 0 {
		return Never
	}
	patience = max(0, min(patience, r.rule.MaxWait))
	return max(1, refused.at.Sub(now)-patience)
}

// Status returns the ceiling in force at now, in tokens per window; how many calls
// of one token that came now, one after the other, would get a turn within the
// rule's MaxWait; and how long it takes until that is more if nobody comes, 0 if it
// never is, to within a nanosecond for each call that waits. It grants turns that have come by now, and changes nothing else.
func (q *Queue) Status(now clock.Instant) (limit float64, remaining int64, reset time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.advance(now)
	return q.schedule.status(&q.waiters, now, q.compiled.rule.MaxWait)
}
