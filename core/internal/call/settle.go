package call

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// Settlement is what core.Settlement says.
type Settlement struct {
	Known bool
	Left  int64
}

// add takes what a rule has left into account.
func (s *Settlement) add(left int64) {
	if !s.Known || left < s.Left {
		s.Known, s.Left = true, left
	}
}

// Settle adds tokens to those that a call took of every rule that counts them, and returns what
// is left. If one panics, those behind it get theirs nevertheless.
func (p *PassedRules) Settle(record *Record, word, rest uint32, start, now clock.Instant, tokens int32) (s Settlement) {
	if record != nil {
		record.settle(&s, 0, now, start, tokens)
	} else {
		p.settleFrom(&s, 0, word, rest, start, now, tokens)
	}
	return s
}

func (p *PassedRules) settleFrom(s *Settlement, i int, word, rest uint32, start, now clock.Instant, tokens int32) {
	defer func() {
		if i < p.Asked() { // one has panicked
			p.settleFrom(s, i+1, word, rest, start, now, tokens)
		}
	}()
	for ; i < p.Asked(); i++ {
		if of := &p.Rules[i]; of.settler != nil {
			of.settle(s, now, start, p.TicketIn(word, rest, i, start), tokens)
		}
	}
}

// settle is [PassedRules.settleFrom] for tickets that are in a record, those of shadow rules too.
func (r *Record) settle(s *Settlement, i int, now, start clock.Instant, tokens int32) {
	defer func() {
		if i < len(r.Passed.Rules) { // one has panicked
			r.settle(s, i+1, now, start, tokens)
		}
	}()
	for ; i < len(r.Passed.Rules); i++ {
		of, slot := &r.Passed.Rules[i], r.slot(i)
		switch {
		case of.settler == nil || !slot.held:
		case i < r.Passed.Asked():
			of.settle(s, now, start, slot.ticket, tokens)
		case tokens != 0: // of a shadow rule nothing is used up
			of.settler.Settle(now, start, slot.ticket, tokens)
		}
	}
}

// settle adds tokens to what a call took of one rule, and notes what is left.
func (of *PassedRule) settle(s *Settlement, now, start clock.Instant, t rule.Ticket, tokens int32) {
	if tokens != 0 {
		of.settler.Settle(now, start, t, tokens)
	}
	if balancer, ok := of.Limiter.(optional.Balancer); ok && !of.demotes {
		if left, known := balancer.Balance(now, start, t); known {
			s.add(left)
		}
	}
}
