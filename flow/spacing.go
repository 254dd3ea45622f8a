package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// spacing is the pace of a throttle: a turn keeps the distance from the last one
// that its tokens take at the ceiling of the second,
//
//	turn = max(arrival, last turn + tokens / ceiling · window)
type spacing struct {
	terms *Terms
	cold  cold
	last  clock.Instant // the turn granted last
}

// next plans with the ceiling of the second in which the call becomes the first.
func (s *spacing) next(now clock.Instant, n int32) (clock.Instant, bool) {
	ceiling := s.cold.ceilingOfTurn(s.terms, max(s.last, now))
	if ceiling == 0 {
		return 0, false
	}
	return max(now, s.last.Add(s.terms.cost(int64(n), ceiling))), true
}

// behind plans with the ceiling of the second in which the first of them became
// the first: seconds are entered in the order of turns.
func (s *spacing) behind(l *line, now clock.Instant, n int32) (clock.Instant, bool) {
	ceiling := s.cold.ceilingOfTurn(s.terms, s.last)
	return max(now, l.head.ticket.turn.Add(s.terms.cost(l.behind+int64(n), ceiling))), true
}

func (s *spacing) grant(_, turn clock.Instant, n int32) Ticket {
	s.cold.ceilingOfTurn(s.terms, turn) // enter the second that it falls in
	s.cold.pass(s.terms, int64(n), turn)
	ticket := Ticket{turn: turn, before: s.last, tokens: n}
	s.last = turn
	return ticket
}

// takeBack returns the last turn; an earlier one has another behind it, which
// has kept its distance for nothing.
func (s *spacing) takeBack(ticket Ticket) bool {
	if s.last != ticket.turn {
		return false
	}
	s.last = ticket.before
	s.cold.pass(s.terms, -int64(ticket.tokens), ticket.turn)
	return true
}

func (s *spacing) adopt(t *Terms, now clock.Instant) pace {
	s.cold.adopt(s.terms, t, now)
	s.terms = t
	return s
}

func (s *spacing) status(l *line, now clock.Instant, maxWait time.Duration) (ceiling float64, room int64, reset time.Duration) {
	ahead := *s // a copy, to look ahead with
	ceiling = ahead.cold.ceilingOfTurn(s.terms, now)
	turn, ok := ahead.next(now, 1)
	if ok && l.head != nil {
		turn, ok = ahead.behind(l, now, 1)
	}
	if !ok {
		return 0, 0, 0
	}
	each, slack := s.terms.cost(1, ceiling), maxWait-turn.Sub(now)
	if slack < 0 {
		return ceiling, 0, -slack
	}
	return ceiling, 1 + int64(slack/each), each - slack%each
}

func (s *spacing) isNew(now clock.Instant) bool {
	ahead := *s
	turn, ok := ahead.next(now, 1)
	return (!ok || turn == now) && ahead.cold.isStoneCold(s.terms)
}
