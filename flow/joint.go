package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// A call that several queues apply to passes at one instant, at which each of
// them grants it a turn; so every queue keeps its distances. The queues of a call
// have an order, and two queues have the same order in all calls. A call that has
// to wait joins them one after the other: it keeps the first place in those whose
// turn has come, without taking the turn, while it waits in the next. Places are
// only ever kept while waiting for a queue that comes later in the order, so that
// somebody can always go on.

// ask is a queue that a call needs a turn of, and the terms of its rule.
type ask struct {
	queue *Queue
	terms *Terms
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
	asks []ask, now clock.Instant, n int32, patience time.Duration, tickets []Ticket,
) (which int, ticket Ticket, decision Decision) {
	lockAll(asks)
	which, ticket, decision = planAll(asks, now, n, patience)
	switch decision {
	case Passed:
		for i, ask := range asks {
			tickets[i] = ask.queue.grant(now, now, n)
		}
	case Refused:
		asks[which].queue.pace.delay(now, ticket.turn, n)
	}
	unlockAll(asks)
	return which, ticket, decision
}

func planAll(
	asks []ask, now clock.Instant, n int32, patience time.Duration,
) (which int, ticket Ticket, decision Decision) {
	for i, ask := range asks {
		turn, said := ask.queue.plan(ask.terms, now, n, min(patience, ask.terms.rule.MaxWait))
		switch said {
		case Refused, Outdated:
			return i, Ticket{turn: turn}, said
		case Queued:
			decision = Queued
		}
		if i == 0 || turn > ticket.turn {
			which, ticket.turn = i, turn
		}
	}
	return which, ticket, decision
}

// expectAll says what [takeAll] would say, and takes nothing.
func expectAll(
	asks []ask, now clock.Instant, n int32, patience time.Duration,
) (which int, ticket Ticket, decision Decision) {
	lockAll(asks)
	defer unlockAll(asks)
	return planAll(asks, now, n, patience)
}

// hold asks for a place in the queue for a call that began to wait at since and
// needs turns of others, too: Passed if it is the first and its turn has come,
// which it does not take; Queued if it has to wait until [queuePlace.ready]; Refused if
// that would take longer than patience, which is to allow for all of the queues;
// Outdated. The ticket tells when the turn is expected.
func (q *Queue) hold(
	t *Terms, now, since clock.Instant, n int32, patience time.Duration, w *Waiter,
) (queuePlace, Ticket, Decision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	turn, decision := q.plan(t, now, n, patience)
	if decision != Outdated {
		q.pace.delay(now, turn, n)
	}
	if decision == Passed || decision == Queued {
		*w = Waiter{wake: w.wake, state: inQueue, tokens: n, arrived: now, since: since, joint: true, deadline: longAfter}
		if patience < forever {
			w.deadline = now.Add(patience)
		}
		q.line.push(w)
		if w == q.line.head {
			q.place(now)
		}
	}
	return queuePlace{q, w}, Ticket{turn: turn}, decision
}

// longAfter is the deadline of a call that has none.
const longAfter = clock.Instant(2 * forever)

// ready asks at now how a place stands: Passed if it is the first and its turn has
// come; Queued with the time until its turn, or until it has to give up if others
// are before it: it is woken when it has become the first; Refused if it would have
// to wait longer than it may; Outdated when the rule is gone or has become one
// for other calls.
func (p queuePlace) ready(now clock.Instant) (after time.Duration, decision Decision) {
	q, w := p.queue, p.waiter
	q.mu.Lock()
	defer q.mu.Unlock()
	q.advance(now)
	switch {
	case w.state == refused:
		return 0, Refused
	case w.state != inQueue: // its rule is gone, is for others, or has become a shadow
		return 0, Outdated
	case w == q.line.head && w.ticket.turn <= now:
		return 0, Passed
	case w == q.line.head:
		return w.ticket.turn.Sub(now), Queued
	case now > w.deadline:
		return 0, Refused
	}
	return w.deadline.Sub(now) + 1, Queued
}

// expect notes when the call is expected to pass, so that those who come behind it
// know how long they have to wait.
func (p queuePlace) expect(turn clock.Instant) {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	p.waiter.expected = turn
}

// leave gives the place up at now; those behind it move up.
func (p queuePlace) leave(now clock.Instant) {
	// It was granted no turn, except by a rule that has become a shadow: then
	// nobody's depends on it.
	if ticket, left := p.queue.Leave(now, p.waiter); !left {
		p.queue.GiveBack(now, ticket)
	}
}

// passAll takes the turns, all at the instant at which the last of them came but not
// before the given one, of a call that is the first in all of its queues. Passed:
// tickets holds them. Queued tells that one has not come by now, or that a place was
// lost: see [queuePlace.ready].
func passAll(asks []ask, places []queuePlace, notBefore, now clock.Instant, tickets []Ticket) Decision {
	lockAll(asks)
	defer unlockAll(asks)
	turn := min(notBefore, now)
	for _, p := range places {
		w := p.waiter
		if w != p.queue.line.head || w.ticket.turn > now {
			return Queued
		}
		turn = max(turn, w.ticket.turn)
	}
	for i, p := range places {
		w := p.waiter
		w.ticket = p.queue.grant(turn, turn, w.tokens)
		tickets[i] = w.ticket
		p.queue.finish(w, granted)
		p.queue.promote(turn)
	}
	return Passed
}

// lockAll locks the queues. It never waits for one while it has locked another: calls
// that came before and after a change of the rules may have them in another order, and
// a queue that takes over from another one locks that, too.
func lockAll(asks []ask) {
	for next := 0; next >= 0; {
		first := next
		asks[first].queue.mu.Lock()
		next = tryLockOthers(asks, first)
	}
}

// tryLockOthers locks all queues but the first, which is locked, and returns -1; or it
// unlocks all and returns which one was locked by somebody else.
func tryLockOthers(asks []ask, first int) (busy int) {
	for i := range asks {
		if i == first || asks[i].queue.mu.TryLock() {
			continue
		}
		unlockAll(asks[:i])
		if first > i {
			asks[first].queue.mu.Unlock()
		}
		return i
	}
	return -1
}

func unlockAll(asks []ask) {
	for _, ask := range asks {
		ask.queue.mu.Unlock()
	}
}
