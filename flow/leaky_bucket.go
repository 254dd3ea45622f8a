package flow

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// leakyBucket is the pace of a throttle, the leaky bucket as a queue. A call passes when
// its tokens have leaked at the effective limit since the last call passed:
//
//	turn = max(arrival, last turn + tokens / limit · window)
//
// Turns are whole nanoseconds, distances need not be. What a turn is rounded up by is
// taken off the distance to the next one, so that rounding does not add up.
type leakyBucket struct {
	terms   *Terms
	warmUp  warmUpState
	last    rounded // the turn that was granted last
	planned rounded // the turn that was planned last for the first call in the queue
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

// next plans with the limit of the step in which the call becomes the first.
func (s *leakyBucket) next(now clock.Instant, n int32) (clock.Instant, bool) {
	limit := s.warmUp.queueLimit(s.terms, max(s.last.at, now))
	if limit == 0 {
		return 0, false
	}
	s.planned = s.last.after(s.terms.cost(int64(n), limit)).notBefore(now)
	return s.planned.at, true
}

func (r rounded) notBefore(now clock.Instant) rounded {
	if r.at <= now {
		return rounded{at: now}
	}
	return r
}

// behind plans with the limit of the step in which the first call in the queue became
// the first: the warm-up goes from step to step in the order of turns.
func (s *leakyBucket) behind(l *line, now clock.Instant, n int32) (clock.Instant, bool) {
	limit := s.warmUp.queueLimit(s.terms, s.last.at)
	planned := s.planned
	if expected := l.head.expected; expected > planned.at {
		planned = rounded{at: expected}
	}
	return planned.after(s.terms.cost(l.behind+int64(n), limit)).notBefore(now).at, true
}

// delay notes the demand. Turns are far apart because the throttle keeps them so, which
// does not mean that the resource is idle.
func (s *leakyBucket) delay(now, turn clock.Instant, n int32) {
	s.warmUp.delayed(s.terms, int64(n), now, turn)
}

func (s *leakyBucket) grant(_, turn clock.Instant, n int32) Ticket {
	s.warmUp.queueLimit(s.terms, turn) // enter the step that it falls in
	s.warmUp.passed(s.terms, int64(n), turn)
	ticket := Ticket{turn: turn, tokens: n, since: s.last.at, part: s.last.by}
	s.last = rounded{at: turn}
	if s.planned.at == turn {
		s.last = s.planned
	}
	return ticket
}

// takeBack takes back the last turn. An earlier turn cannot be given to another call: the
// one behind it has kept its distance already.
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
