package hotparam

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/hotparam/internal/table"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/internal/pending"
	"github.com/penstock-go/penstock/internal/sharing/ask"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/rule"
)

// askLimiter is one version of a rule of mode ask: each call waits for the answer of the
// backend.
type askLimiter struct{ fleetLimiter }

var (
	_ rule.Queue       = (*askLimiter)(nil)
	_ optional.Decider = (*askLimiter)(nil)
)

// Acquire refuses a call while a denial of the backend holds for its value: nobody asks again.
// Every other call waits for an answer, if its value finds a slot or a cell.
func (l *askLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	return l.acquire(c, l.unknownSource())
}

// AcquireFrom decides on a call of which is known where it comes from.
func (l *askLimiter) AcquireFrom(c rule.Call, source rule.Attribute) (rule.Ticket, rule.Decision) {
	return l.acquire(c, l.sourceOf(source))
}

func (l *askLimiter) acquire(c rule.Call, from table.Source) (rule.Ticket, rule.Decision) {
	s, decision := l.subjectOf(c.Attribute)
	if decision != limited {
		return undecided(decision)
	}
	if wait := l.withoutAsking(s, c); wait > 0 {
		return l.refuse(s, c, wait, false)
	}
	switch v, slot := l.find(s, c, from); {
	case v == nil:
		return 0, without(slot)
	case v.cell > 0 && (l.rule.Algorithm == Prepaid || !l.mayCell(s, c, from)): // nobody can share a balance
		return l.refuse(s, c, 0, true)
	case v.cell == 0 && v.asker.Denied(c.Now, c.Tokens) > 0:
		return l.refuse(s, c, l.wait(s, c), false)
	}
	return 0, rule.Wait
}

// joining is the source of calls whose value has lost its slot between [askLimiter.Acquire] and
// [askLimiter.Join], which does not know where they come from: they count together.
func (l *askLimiter) joining() table.Source {
	if l.sources {
		return table.SourceOf(prime1)
	}
	return table.NoSource
}

// DecidesWithin implements [optional.Decider].
func (l *askLimiter) DecidesWithin() time.Duration { return l.fleet.member.Timeout() }

// Join asks the backend.
func (l *askLimiter) Join(c rule.Call, patience rule.Patience) (rule.Waiter, rule.Ticket, rule.Decision) {
	s, decision := l.subjectOf(c.Attribute)
	if decision != limited {
		return nil, 0, decision
	}
	if l.withoutAsking(s, c) > 0 {
		l.refuse(s, c, 0, false)
		return nil, 0, rule.Block
	}
	w := &askWaiter{limiter: l, subject: s}
	w.Begin(w, patience.Wake)
	for {
		v, slot := l.find(s, c, l.joining())
		if v == nil {
			return nil, 0, rule.Stale
		}
		if l.rule.Algorithm == Prepaid && v.cell > 0 { // nobody can share a balance
			l.refuse(s, c, 0, true)
			return nil, 0, rule.Block
		}
		w.value, w.slot = v, slot
		w.wait = v.asker.Wait(c.Now, c.Tokens, patience.Wake)
		if _, state := w.wait.Poll(c.Now); state != exchange.Released {
			break
		}
	}
	w.name.of = l.state.salt
	w.name.setName(c.Attribute)
	if ticket, _, decision := w.Poll(c.Now); decision != rule.Wait { // the answer is known already
		return nil, ticket, decision
	}
	return w, 0, rule.Wait
}

// askWaiter is a call that waits for an answer.
type askWaiter struct {
	pending.Call
	limiter *askLimiter
	subject subject
	value   *sharedValue
	slot    int
	name    hotValue
	wait    *ask.Wait
}

// Look implements [pending.Place].
func (w *askWaiter) Look(now clock.Instant) time.Duration {
	l := w.limiter
	if l.fleet.versions.Ended() {
		w.wait.Leave()
		w.Release()
		return 0
	}
	after, state := w.wait.Poll(now)
	switch state {
	case exchange.Pending:
		return after
	case exchange.Released:
		w.Release()
		return 0
	case exchange.Allowed:
		w.Grant(l.fleet.ticket(w.value, w.slot, w.subject.isOwn))
	case exchange.Denied:
		w.Refuse()
		if l.penalties != nil && w.value.cell == 0 {
			l.penalties.refused(w.subject.key, now)
		}
	}
	w.noteUse()
	l.state.keep(now, l.keeps)
	l.state.hottest.countNamed(now, w.subject.key, &w.name, state == exchange.Allowed)
	return 0
}

// Withdraw implements [pending.Place].
func (w *askWaiter) Withdraw(clock.Instant) {
	w.wait.Leave()
	w.End()
}

// GiveBack implements [pending.Place].
func (w *askWaiter) GiveBack(clock.Instant, rule.Ticket) { w.wait.Leave() }
