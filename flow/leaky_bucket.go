package flow

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// spacing is the pace of a throttle: a turn keeps the distance from the last one
// that its tokens take at the ceiling of the second,
//
//	turn = max(arrival, last turn + tokens / ceiling · window)
//
// Turns are whole nanoseconds, distances need not be: what a turn is rounded up
// by comes off the distance to the next, so that it does not add up.
type leakyBucket struct {
	terms   *Terms
	warmUp  warmUpState
	last    rounded // the turn granted last
	planned rounded // the turn planned last for whoever is the first
}

// rounded is an instant and what it was rounded up by, in nanoseconds.
type rounded struct {
	at clock.Instant
	by float64
}

// after returns the instant so many nanoseconds later.
func (r rounded) after(nanoseconds float64) rounded {
	const tolerance = 1e-4 // by which sums of fractions may miss a whole nanosecond
	exact := min(nanoseconds-r.by, float64(forever))
	whole := math.Ceil(exact - tolerance)
	by := whole - exact
	if by < tolerance {
		by = 0 // it was whole
	}
	return rounded{r.at.Add(time.Duration(whole)), by}
}

// next plans with the ceiling of the second in which the call becomes the first.
func (s *leakyBucket) next(now clock.Instant, n int32) (clock.Instant, bool) {
	ceiling := s.warmUp.queueLimit(s.terms, max(s.last.at, now))
	if ceiling == 0 {
		return 0, false
	}
	s.planned = s.last.after(s.terms.cost(int64(n), ceiling)).notBefore(now)
	return s.planned.at, true
}

func (r rounded) notBefore(now clock.Instant) rounded {
	if r.at <= now {
		return rounded{at: now}
	}
	return r
}

// behind plans with the ceiling of the second in which the first of them became
// the first: seconds are entered in the order of turns.
func (s *leakyBucket) behind(l *line, now clock.Instant, n int32) (clock.Instant, bool) {
	ceiling := s.warmUp.queueLimit(s.terms, s.last.at)
	planned := s.planned
	if expected := l.head.expected; expected > planned.at {
		planned = rounded{at: expected}
	}
	return planned.after(s.terms.cost(l.behind+int64(n), ceiling)).notBefore(now).at, true
}

// delay tells how much is wanted: the distance between turns is the throttle's doing,
// and no sign of idleness.
func (s *leakyBucket) delay(now, turn clock.Instant, n int32) {
	s.warmUp.delayed(s.terms, int64(n), now, turn)
}

func (s *leakyBucket) grant(_, turn clock.Instant, n int32) Ticket {
	s.warmUp.queueLimit(s.terms, turn) // enter the second that it falls in
	s.warmUp.passed(s.terms, int64(n), turn)
	ticket := Ticket{turn: turn, tokens: n, since: s.last.at, part: s.last.by}
	s.last = rounded{at: turn}
	if s.planned.at == turn {
		s.last = s.planned
	}
	return ticket
}

// takeBack returns the last turn; an earlier one has another behind it, which
// has kept its distance for nothing.
func (s *leakyBucket) takeBack(ticket Ticket) bool {
	if s.last.at != ticket.turn {
		return false
	}
	s.last = rounded{ticket.since, ticket.part}
	s.warmUp.passed(s.terms, -int64(ticket.tokens), ticket.turn)
	return true
}

func (s *leakyBucket) adopt(t *Terms, now clock.Instant) pace {
	s.warmUp.adopt(s.terms, t, now)
	s.terms = t
	return s
}

func (s *leakyBucket) resume(log *passLog, _ clock.Instant) {
	if at, ok := log.last(); ok {
		s.last = rounded{at: at}
	}
}

// recent returns a token for the last turn: it is only known when that was.
func (s *leakyBucket) recent(now clock.Instant) (at clock.Instant, tokens int64) {
	if s.last.at == longAgo {
		return 0, 0
	}
	return min(s.last.at, now), 1
}

func (s *leakyBucket) isNew(now clock.Instant) bool {
	ahead := *s
	turn, ok := ahead.next(now, int32(max(1, math.Ceil(s.terms.rule.Limit))))
	return (!ok || turn == now) && ahead.warmUp.isCold(s.terms)
}
