package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// A call that several queues apply to passes all of them at one instant, so that every
// queue keeps its schedule. The queues of a call have an order, and two queues have the
// same order in all calls. A call that has to wait joins them one after the other: where
// it is the first and may pass, it keeps that place without passing, and waits in the
// next queue. A call that keeps a place only waits for queues that come later in the
// order, so calls cannot wait for each other in a circle.

// queueRule is a queue and the version of its rule under which a call asks it.
type queueRule struct {
	queue    *Queue
	compiled *Compiled
}

// queuePlace is the place of a call in one of the several queues that it has to pass.
// It belongs to the goroutine of the call.
type queuePlace struct {
	queue  *Queue
	waiter *Waiter
}

// takeAll takes n tokens of several queues at now. Pass: turns has theirs, in
// the same order. Otherwise nothing was taken. Block and Stale are said by the queue of
// the index which; Block if the wait for it would be longer than patience. Wait: the call
// may wait, see [Queue.takePlace]. The turn tells when that queue, or with Wait
// the last of the queues, would let the call pass.
func takeAll(
	queues []queueRule, now clock.Instant, n int32, p rule.Priority, patience time.Duration, turns []Turn,
) (which int, turn Turn, decision rule.Decision) {
	lockAll(queues)
	which, turn, decision = planAll(queues, now, n, p, patience)
	switch decision {
	case rule.Pass:
		for i, q := range queues {
			turns[i] = q.queue.grant(now, now, n)
			if q.queue.waiters.head != nil {
				q.queue.overtake(now)
			}
		}
	case rule.Block:
		queues[which].queue.schedule.delay(now, turn.at, n)
	}
	unlockAll(queues)
	return which, turn, decision
}

func planAll(
	queues []queueRule, now clock.Instant, n int32, p rule.Priority, patience time.Duration,
) (which int, turn Turn, decision rule.Decision) {
	for i, q := range queues {
		passAt, said := q.queue.plan(q.compiled, now, n, p, min(patience, q.compiled.rule.MaxWait))
		switch said {
		case rule.Block, rule.Stale:
			return i, Turn{at: passAt}, said
		case rule.Wait:
			decision = rule.Wait
		}
		if i == 0 || passAt > turn.at {
			which, turn.at = i, passAt
		}
	}
	return which, turn, decision
}

// expectAll says what [takeAll] would say, and takes nothing.
func expectAll(
	queues []queueRule, now clock.Instant, n int32, p rule.Priority, patience time.Duration,
) (which int, turn Turn, decision rule.Decision) {
	lockAll(queues)
	defer unlockAll(queues)
	return planAll(queues, now, n, p, patience)
}

// takePlace takes a place in the queue for a call that began to wait at since and has
// to pass other queues, too. Pass: it is the first and may pass now, but has not passed
// yet. Wait: it has to wait, see [queuePlace.ready]. Block: that would take longer than
// patience, which has to allow for all of the queues. Stale as for Take. The
// turn tells when the call is expected to pass.
func (q *Queue) takePlace(
	r *Compiled, now, since clock.Instant, n int32, patience time.Duration, w *Waiter,
) (queuePlace, Turn, rule.Decision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	passAt, decision := q.plan(r, now, n, w.priority, patience)
	if decision != rule.Stale {
		q.schedule.delay(now, passAt, n)
	}
	if decision == rule.Pass || decision == rule.Wait {
		w.join(now, n)
		w.since, w.joint, w.deadline = since, true, noDeadline
		if patience < forever {
			w.deadline = now.Add(patience)
		}
		q.push(w, now)
	}
	return queuePlace{q, w}, Turn{at: passAt}, decision
}

// longAfter is the deadline of a call that has none.
const noDeadline = clock.Instant(2 * forever)

// ready tells how a place stands at now. Pass: it is the first, and its time has come.
// Wait: the duration is how long it takes until then or, if others are before it, until
// the call has to give up; it is woken when it has become the first. Block: it would
// have to wait longer than it may. Stale: the rule is gone or has become one for other
// calls.
func (p queuePlace) ready(now clock.Instant) (after time.Duration, decision rule.Decision) {
	q, w := p.queue, p.waiter
	q.mu.Lock()
	defer q.mu.Unlock()
	q.catchUp(now)
	switch {
	case w.state == refused:
		return 0, rule.Block
	case w.state != queued: // its rule is gone, is for others, or has become a shadow
		return 0, rule.Stale
	case w == q.waiters.head && w.turn.at <= now:
		return 0, rule.Pass
	case w == q.waiters.head:
		return q.untilHeadPasses(now), rule.Wait
	case now > w.deadline:
		return 0, rule.Block
	}
	return w.deadline.Sub(now) + 1, rule.Wait
}

// expect notes when the call is expected to pass, so that calls behind it know how long
// they have to wait.
func (p queuePlace) expect(passAt clock.Instant) {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	p.waiter.expected = passAt
}

// leave gives the place up at now; the calls behind it move up.
func (p queuePlace) leave(now clock.Instant) {
	// Nothing was granted, except by a rule that has become a shadow: then no other
	// call depends on it.
	if turn, left := p.queue.Leave(now, p.waiter); !left {
		p.queue.GiveBack(now, turn)
	}
}

// passAll lets a call pass that is the first in all of its queues, at the instant at
// which the last of them lets it pass, but not before the given one. Pass: turns
// has theirs. Wait: the time of one has not come by now, or a place was lost; see
// [queuePlace.ready].
func passAll(queues []queueRule, places []queuePlace, notBefore, now clock.Instant, turns []Turn) rule.Decision {
	lockAll(queues)
	defer unlockAll(queues)
	passAt := min(notBefore, now)
	for _, p := range places {
		w := p.waiter
		if w != p.queue.waiters.head || w.turn.at > now {
			return rule.Wait
		}
		passAt = max(passAt, w.turn.at)
	}
	for i, p := range places {
		w := p.waiter
		w.turn = p.queue.grant(passAt, passAt, w.tokens)
		turns[i] = w.turn
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
// unlocks all and returns which one was locked already.
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
