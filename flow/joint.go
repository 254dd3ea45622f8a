package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// A call that several queues apply to passes at one instant, at which each of
// them grants it a turn; so every queue keeps its distances. The queues of a call
// have an order, and two queues have the same order in all calls. A call that has
// to wait joins them one after the other: it keeps the first place in those whose
// turn has come, without taking the turn, while it waits in the next. Places are
// only ever kept while waiting for a queue that comes later in the order, so that
// somebody can always go on.

// queueRule is a queue that a call needs a turn of, and the terms of its rule.
type queueRule struct {
	queue    *Queue
	compiled *Compiled
}

// queuePlace is what a call that needs a turn of several queues has in one of them.
// It belongs to the goroutine of the call.
type queuePlace struct {
	queue  *Queue
	waiter *Waiter
}

// takeAll asks several queues, in their order, for a turn at now, for n tokens.
// Passed: tickets holds the turns, in the same order. Otherwise nothing was
// taken: Refused or Outdated is said by the queue of the index which; Refused if
// the wait for it would be longer than patience; Queued tells that [Queue.hold]
// may get the turns. The ticket is that of the queue, or with Queued the latest.
func takeAll(
	queues []queueRule, now clock.Instant, n int32, patience time.Duration, reservations []Reservation,
) (which int, reservation Reservation, decision rule.Decision) {
	lockAll(queues)
	which, reservation, decision = planAll(queues, now, n, patience)
	switch decision {
	case rule.Pass:
		for i, q := range queues {
			reservations[i] = q.queue.grant(now, now, n)
		}
	case rule.Block:
		queues[which].queue.schedule.delay(now, reservation.at, n)
	}
	unlockAll(queues)
	return which, reservation, decision
}

func planAll(
	queues []queueRule, now clock.Instant, n int32, patience time.Duration,
) (which int, reservation Reservation, decision rule.Decision) {
	for i, q := range queues {
		passAt, said := q.queue.plan(q.compiled, now, n, min(patience, q.compiled.rule.MaxWait))
		switch said {
		case rule.Block, rule.Stale:
			return i, Reservation{at: passAt}, said
		case rule.Wait:
			decision = rule.Wait
		}
		if i == 0 || passAt > reservation.at {
			which, reservation.at = i, passAt
		}
	}
	return which, reservation, decision
}

// expectAll says what [takeAll] would say, and takes nothing.
func expectAll(
	queues []queueRule, now clock.Instant, n int32, patience time.Duration,
) (which int, reservation Reservation, decision rule.Decision) {
	lockAll(queues)
	defer unlockAll(queues)
	return planAll(queues, now, n, patience)
}

// takePlace asks for a place in the queue for a call that began to wait at since and
// needs turns of others, too: Passed if it is the first and its turn has come,
// which it does not take; Queued if it has to wait until [queuePlace.ready]; Refused if
// that would take longer than patience, which is to allow for all of the queues;
// Outdated. The ticket tells when the turn is expected.
func (q *Queue) takePlace(
	r *Compiled, now, since clock.Instant, n int32, patience time.Duration, w *Waiter,
) (queuePlace, Reservation, rule.Decision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	passAt, decision := q.plan(r, now, n, patience)
	if decision != rule.Stale {
		q.schedule.delay(now, passAt, n)
	}
	if decision == rule.Pass || decision == rule.Wait {
		*w = Waiter{wake: w.wake, state: queued, tokens: n, arrived: now, since: since, joint: true, deadline: longAfter}
		if patience < forever {
			w.deadline = now.Add(patience)
		}
		q.waiters.push(w)
		if w == q.waiters.head {
			q.place(now)
		}
	}
	return queuePlace{q, w}, Reservation{at: passAt}, decision
}

// longAfter is the deadline of a call that has none.
const longAfter = clock.Instant(2 * forever)

// ready asks at now how a place stands: Passed if it is the first and its turn has
// come; Queued with the time until its turn, or until it has to give up if others
// are before it: it is woken when it has become the first; Refused if it would have
// to wait longer than it may; Outdated when the rule is gone or has become one
// for other calls.
func (p queuePlace) ready(now clock.Instant) (after time.Duration, decision rule.Decision) {
	q, w := p.queue, p.waiter
	q.mu.Lock()
	defer q.mu.Unlock()
	q.advance(now)
	switch {
	case w.state == refused:
		return 0, rule.Block
	case w.state != queued: // its rule is gone, is for others, or has become a shadow
		return 0, rule.Stale
	case w == q.waiters.head && w.reservation.at <= now:
		return 0, rule.Pass
	case w == q.waiters.head:
		return w.reservation.at.Sub(now), rule.Wait
	case now > w.deadline:
		return 0, rule.Block
	}
	return w.deadline.Sub(now) + 1, rule.Wait
}

// expect notes when the call is expected to pass, so that those who come behind it
// know how long they have to wait.
func (p queuePlace) expect(passAt clock.Instant) {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	p.waiter.expected = passAt
}

// leave gives the place up at now; those behind it move up.
func (p queuePlace) leave(now clock.Instant) {
	// It was granted no turn, except by a rule that has become a shadow: then
	// nobody's depends on it.
	if reservation, left := p.queue.Leave(now, p.waiter); !left {
		p.queue.GiveBack(now, reservation)
	}
}

// passAll takes the turns, all at the instant at which the last of them came but not
// before the given one, of a call that is the first in all of its queues. Passed:
// tickets holds them. Queued tells that one has not come by now, or that a place was
// lost: see [queuePlace.ready].
func passAll(queues []queueRule, places []queuePlace, notBefore, now clock.Instant, reservations []Reservation) rule.Decision {
	lockAll(queues)
	defer unlockAll(queues)
	passAt := min(notBefore, now)
	for _, p := range places {
		w := p.waiter
		if w != p.queue.waiters.head || w.reservation.at > now {
			return rule.Wait
		}
		passAt = max(passAt, w.reservation.at)
	}
	for i, p := range places {
		w := p.waiter
		w.reservation = p.queue.grant(passAt, passAt, w.tokens)
		reservations[i] = w.reservation
		p.queue.finish(w, granted)
		p.queue.promote(passAt)
	}
	return rule.Pass
}

// lockAll locks the queues. It never waits for one while it has locked another: calls
// that came before and after a change of the rules may have them in another order, and
// a queue that takes over from another one locks that, too.
func lockAll(queues []queueRule) {
	for next := 0; next >= 0; {
		first := next
		queues[first].queue.mu.Lock()
		next = tryLockOthers(queues, first)
	}
}

// tryLockOthers locks all queues but the first, which is locked, and returns -1; or it
// unlocks all and returns which one was locked by somebody else.
func tryLockOthers(queues []queueRule, first int) (busy int) {
	for i := range queues {
		if i == first || queues[i].queue.mu.TryLock() {
			continue
		}
		unlockAll(queues[:i])
		if first > i {
			queues[first].queue.mu.Unlock()
		}
		return i
	}
	return -1
}

func unlockAll(queues []queueRule) {
	for _, q := range queues {
		q.queue.mu.Unlock()
	}
}
