package hotparam

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/hotparam/internal/table"
	"github.com/penstock-go/penstock/rule"
)

// Acquire lets a call pass at once, or says whether it may wait. Nothing is reserved for a
// call that may wait.
func (l *throttle) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	s, decision := l.subjectOf(c.Attribute)
	if decision != limited {
		return undecided(decision)
	}
	t, place, wait, outcome := l.take(s, c, table.UnknownSource)
	switch outcome {
	case table.Taken:
		return l.pass(t, place, s, c.Now, c.Attribute), rule.Pass
	case table.Refused:
		return l.waitOrRefuse(s, c, place, wait)
	}
	if t, place, wait, outcome = l.takeAgain(s, c, table.UnknownSource, outcome); outcome == table.Refused {
		return l.waitOrRefuse(s, c, place, wait)
	}
	return l.decide(s, c, t, place, wait, outcome)
}

// waitOrRefuse decides on a call that may not pass now.
func (l *throttle) waitOrRefuse(s subject, c rule.Call, place table.Place, wait time.Duration) (rule.Ticket, rule.Decision) {
	if l.rule.MaxWait > 0 && wait <= l.rule.MaxWait && !l.isPenalised(s, c.Now) {
		return 0, rule.Wait
	}
	return l.refuse(s, c, l.untilItMayWait(wait), place.IsShared())
}

// untilItMayWait returns when a call may wait that would have to wait for so long.
func (l *throttle) untilItMayWait(wait time.Duration) time.Duration {
	if wait > l.rule.MaxWait && wait < rule.Forbidden {
		return wait - l.rule.MaxWait
	}
	return wait
}

// delay returns how long it takes until a call passes if it waits; Never if it cannot pass,
// or the value is refused outright.
func (l *throttle) delay(s subject, c rule.Call) time.Duration {
	if l.isPenalised(s, c.Now) {
		return rule.Never
	}
	return l.tablesOf(s, c.Now).buckets.RetryAfter(s.key, l.now[s.class], c.Now, c.Tokens)
}

// Join makes a reservation for a call: it passes now, or waits until then.
func (l *throttle) Join(c rule.Call, patience rule.Patience) (rule.Waiter, rule.Ticket, rule.Decision) {
	s, decision := l.subjectOf(c.Attribute)
	if decision != limited {
		return nil, 0, decision
	}
	latest := min(patience.Until, addTo(patience.Since, l.rule.MaxWait))
	if delay := l.delay(s, c); delay > 0 && addTo(c.Now, delay) > latest {
		l.refuse(s, c, 0, false)
		return nil, 0, rule.Block
	}
	t := l.tablesOf(s, c.Now)
	place, at, outcome := t.buckets.Reserve(s.key, l.rates.Class(s.class), c.Now, c.Tokens)
	if outcome == table.Stale && l.hasGrown() {
		t = l.tablesOf(s, c.Now)
		place, at, outcome = t.buckets.Reserve(s.key, l.rates.Class(s.class), c.Now, c.Tokens)
	}
	switch {
	case outcome == table.Stale:
		return nil, 0, rule.Stale
	case outcome == table.Refused:
		l.refuse(s, c, 0, false)
		return nil, 0, rule.Block
	case at > max(latest, c.Now): // another call was quicker
		t.buckets.Cancel(place, c.Now, at, c.Tokens)
		l.refuse(s, c, 0, false)
		return nil, 0, rule.Block
	}
	ticket := l.pass(t, place, s, c.Now, c.Attribute)
	if at <= c.Now {
		return nil, ticket, rule.Pass
	}
	w := &throttled{timedCall: timedCall{of: l.state.salt}, limiter: l, at: at, ticket: ticket, tokens: c.Tokens}
	w.Begin(w, patience.Wake)
	l.state.timed.add(&w.timedCall)
	return w, 0, rule.Wait
}

// RetryAfter returns how long it takes until such a call passes; if it would have to wait
// for too long now, until it may wait.
func (l *throttle) RetryAfter(c rule.Call) time.Duration {
	wait, penalty := l.retryAfter(c)
	return max(l.untilItMayWait(wait), penalty)
}

// GiveBack gives back the reservation of a call that another rule refused, if the call
// passed at that instant and there is no later reservation.
func (l *throttle) GiveBack(now clock.Instant, ticket rule.Ticket, tokens int32) {
	l.cancel(now, now, ticket, tokens)
}

// cancel gives back the reservation of a call that was to pass at an instant.
func (l *throttle) cancel(now, at clock.Instant, ticket rule.Ticket, tokens int32) {
	if ticket != 0 {
		t, place := l.placeOf(now, ticket)
		t.buckets.Cancel(place, now, at, tokens)
	}
}

// Settle puts the next call of the value off by the time that more tokens take. It gives
// nothing back: the calls behind have waited already.
func (l *throttle) Settle(now, start clock.Instant, ticket rule.Ticket, tokens int32) {
	if tokens > 0 {
		l.settle(now, start, ticket, tokens)
	}
}

// Retire lets go of the calls that wait, for the rule is gone.
func (l *throttle) Retire(now clock.Instant) {
	for _, w := range l.state.timed.releaseAll(l.state.salt) {
		w.Place().GiveBack(now, 0)
		w.Wake()
	}
}

// throttled is a call that waits for the instant of its reservation.
type throttled struct {
	timedCall
	limiter *throttle
	at      clock.Instant
	ticket  rule.Ticket
	tokens  int32
}

// Look implements [pending.Place].
func (w *throttled) Look(now clock.Instant) time.Duration {
	if now < w.at {
		return w.at.Sub(now)
	}
	if w.limiter.state.timed.remove(&w.timedCall) {
		w.Grant(w.ticket)
	}
	return 0
}

// Withdraw implements [pending.Place].
func (w *throttled) Withdraw(now clock.Instant) {
	if w.limiter.state.timed.remove(&w.timedCall) {
		w.End()
		w.GiveBack(now, 0)
	}
}

// GiveBack implements [pending.Place]. The reservation is given back if it is the last one.
func (w *throttled) GiveBack(now clock.Instant, _ rule.Ticket) {
	w.limiter.cancel(now, w.at, w.ticket, w.tokens)
}
