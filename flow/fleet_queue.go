package flow

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/sharing/lease"
	"github.com/penstock-go/penstock/internal/waitqueue"
	"github.com/penstock-go/penstock/rule"
)

// fleetQueue is the calls that wait for tokens which the instance leases. They pass in the
// order of package waitqueue; those of a throttle are evenly spaced, too, at the rate that
// the fleet grants to the instance. The mutex of its leasedLimit guards it.
type fleetQueue struct {
	budget  *lease.Budget
	version *fleetVersion // in force

	waiters waitqueue.Queue[fleetWaiter]
	tokens  [waitqueue.Levels]int64 // that waiting calls take

	// head is the first call, as it was woken last. The member reads it without the mutex,
	// when tokens have arrived: it may be holding its own while a version changes.
	head atomic.Pointer[fleetWaiter]

	counted clock.Instant // the instant of a call that has counted as demand and may join; 0 if none

	// Of a throttle:
	last clock.Instant // when a call passed last
	pace float64       // tokens per second; 0 until one has
	late bool          // a call has its distance, but there are no tokens
}

func (q *fleetQueue) init(v *fleetVersion, budget *lease.Budget) {
	q.budget, q.version, q.last = budget, v, beforeAll
}

func (q *fleetQueue) isEmpty() bool { return q.waiters.Len() == 0 }

// take decides on a call at now: Pass, with its tokens taken; Wait or Block, with how long it
// probably has to wait, [rule.Never] if it never can pass.
func (q *fleetQueue) take(now clock.Instant, n int32, p rule.Priority) (wait time.Duration, decision rule.Decision) {
	q.advance(now)
	if q.waiters.WouldOvertake(p.Level()) && q.earliest(now, now, n) <= now {
		if q.budget.Has(now, n) && q.budget.Take(now, n) {
			q.waiters.Overtake()
			q.pass(now, now, n, q.late)
			return 0, rule.Pass
		}
		q.late = true
	}
	if wait = q.expect(now, n, p); wait > q.version.rule.MaxWait {
		return wait, rule.Block
	}
	return wait, rule.Wait
}

// count counts as demand what a call asks for that does not pass at once. One that waits is
// asked about several times at one instant, before it joins: it counts once.
func (q *fleetQueue) count(now clock.Instant, n int32, waits bool) {
	if !waits || q.counted != now {
		q.budget.Refuse(now, n)
	}
	if q.counted = now; !waits {
		q.counted = 0
	}
}

// earliest returns when n tokens of a call that has come at an instant may pass, by what is
// known at now, if they are there: at that instant or, in a throttle, a distance after the
// call before.
func (q *fleetQueue) earliest(at, now clock.Instant, n int32) clock.Instant {
	if q.version.rule.Algorithm != Throttle {
		return at
	}
	return max(at, q.last.Add(q.timeOf(now, int64(n))))
}

// timeOf returns how long n tokens take at the pace of the queue.
func (q *fleetQueue) timeOf(now clock.Instant, n int64) time.Duration {
	rate := q.rate(now)
	if !(rate > 0) {
		return forever
	}
	return time.Duration(min(float64(n)/rate*1e9, float64(forever)))
}

// rate returns how fast tokens pass, per second: those of a bucket as they are granted.
func (q *fleetQueue) rate(now clock.Instant) float64 {
	if q.version.rule.Algorithm != Throttle || q.pace == 0 || now.Sub(q.last) > paceLife {
		return q.budget.Rate()
	}
	return q.pace
}

// The pace of a throttle grows while tokens are there, as much in paceGrowth as there is
// of it, and falls by paceFall when a call finds none. So it stays near to what the fleet
// grants. When nothing has passed for paceLife it begins anew.
const (
	paceGrowth = 300 * time.Millisecond
	paceFall   = 0.75
	paceLife   = time.Second
)

// pass notes that a call of n tokens passes, which a throttle counts as of an instant. late
// says that it could have passed before if tokens had been there.
func (q *fleetQueue) pass(at, now clock.Instant, n int32, late bool) {
	if q.version.rule.Algorithm == Throttle {
		pace := q.rate(now)
		if late {
			pace *= paceFall
		} else {
			pace += float64(n) / paceGrowth.Seconds() // (n / pace) / paceGrowth of it
		}
		q.pace = min(pace, max(q.version.terms.PerSecond(), q.budget.Rate()))
	}
	q.last, q.late = at, false
}

// expect returns how long a call of n tokens that comes at now has to wait, behind those that
// wait and are served before it; [rule.Never] if it never can pass.
func (q *fleetQueue) expect(now clock.Instant, n int32, p rule.Priority) time.Duration {
	granted := q.budget.RetryAfter(now, n) // when the fleet grants something at the earliest
	if granted == rule.Never {
		return rule.Never
	}
	tokens := q.before(p) + int64(n)
	if q.version.rule.Algorithm != Throttle {
		return max(granted, q.timeOf(now, max(0, tokens-q.budget.Available(now))))
	}
	return max(granted, q.last.Add(q.timeOf(now, tokens)).Sub(now), 0)
}

// before returns how many tokens the calls take that wait and are served before one of that
// priority that comes now. One in eight of them is of a lower one, if there are any.
func (q *fleetQueue) before(p rule.Priority) int64 {
	var before, below int64
	for level, tokens := range q.tokens {
		if level < p.Level() {
			below += tokens
		} else {
			before += tokens
		}
	}
	return before + min(below, before/(waitqueue.Share-1))
}

// advance lets the waiting calls pass whose time has come by now and whose tokens are there,
// refuses those that have waited too long, and has the first of the others look after itself.
func (q *fleetQueue) advance(now clock.Instant) {
	for w := q.waiters.First(); w != nil; w = q.waiters.First() {
		switch {
		case w.deadline < now:
			q.refuse(w)
			continue
		case q.earliest(w.arrived, now, w.tokens) > now:
		case !q.budget.Retake(now, w.tokens):
			q.late = true
			q.askAgain(w, now)
		default:
			q.budget.Refuse(now, -w.tokens) // it was counted when it came
			// A call that is late only because a timer was passes as of its time, or the
			// delays would add up.
			at := now
			if !q.late {
				at = q.earliest(w.arrived, now, w.tokens)
			}
			q.pass(at, now, w.tokens, q.late)
			q.waiters.Serve(&w.place)
			q.tokens[w.level] -= int64(w.tokens)
			w.Grant(rule.Ticket(now))
			w.Wake()
			continue
		}
		break
	}
	q.wakeNewHead()
}

// askAgain counts the first call as demand once more if it waits for long: what nobody asks
// for of late is not leased.
func (q *fleetQueue) askAgain(w *fleetWaiter, now clock.Instant) {
	if now.Sub(w.counted) >= lookAgain {
		w.counted = now
		q.budget.Refuse(now, w.tokens)
	}
}

// wakeNewHead wakes the first call if it has not been the first before.
func (q *fleetQueue) wakeNewHead() {
	if first := q.waiters.First(); first != q.head.Load() {
		q.head.Store(first)
		q.wakeHead()
	}
}

// wakeHead wakes the first call: tokens may have arrived. It needs no mutex.
func (q *fleetQueue) wakeHead() {
	if first := q.head.Load(); first != nil {
		first.Wake()
	}
}

// push has a call join the queue.
func (q *fleetQueue) push(w *fleetWaiter) {
	q.waiters.Push(w, &w.place, w.level)
	q.tokens[w.level] += int64(w.tokens)
	q.wakeNewHead()
}

// remove takes a call out of the queue that does not pass.
func (q *fleetQueue) remove(w *fleetWaiter) {
	q.waiters.Remove(&w.place)
	q.tokens[w.level] -= int64(w.tokens)
}

// refuse takes a call out of the queue that may not wait any longer, and wakes it.
func (q *fleetQueue) refuse(w *fleetWaiter) {
	q.remove(w)
	w.Refuse()
	w.Wake()
}

// releaseAll ends all waits: the rule is gone, or is one for others.
func (q *fleetQueue) releaseAll() {
	for w := q.waiters.First(); w != nil; w = q.waiters.First() {
		q.remove(w)
		w.Release()
		w.Wake()
	}
	q.head.Store(nil)
}

// untilHeadPasses returns how long the first call waits before it looks again, if nothing
// wakes it: until it has its distance, or until the fleet is expected to grant something.
func (q *fleetQueue) untilHeadPasses(w *fleetWaiter, now clock.Instant) time.Duration {
	left := w.deadline.Sub(now)
	if distance := q.earliest(w.arrived, now, w.tokens).Sub(now); distance > 0 {
		return min(left, distance)
	}
	if expected := q.budget.RetryAfter(now, w.tokens); expected > 0 {
		left = min(left, expected)
	}
	return min(left, lookAgain)
}

// change goes over to another version, by which the calls wait from now on. Those that it is
// not for, or not in the same way, go on without it.
func (q *fleetQueue) change(v *fleetVersion, now clock.Instant) {
	from := q.version
	q.version = v
	if from.rule.Origin != v.rule.Origin || from.rule.Shadow != v.rule.Shadow || !v.canWait() {
		q.releaseAll()
		return
	}
	for w := range q.waiters.All() {
		if w.deadline = w.since.Add(v.rule.MaxWait); w.deadline < now || v.rule.Limit == 0 {
			q.refuse(w)
			continue
		}
		w.Wake() // to look when to give up
	}
	q.head.Store(nil)
	q.advance(now)
}

// owe puts the next call of a throttle off by what a call took more than it said.
func (q *fleetQueue) owe(now clock.Instant, tokens int32) {
	if q.version.rule.Algorithm == Throttle && tokens > 0 {
		q.last = q.last.Add(q.timeOf(now, int64(tokens)))
	}
}
