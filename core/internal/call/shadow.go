package call

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Count counts a call for rules with related, of which there are some.
func (c *Chain) Count(q *Request, record *Record) {
	counted := false
	defer func() {
		if !counted && record != nil {
			record.LeaveShadows(q, len(c.Shadows()))
		}
	}()
	for _, counter := range c.counters {
		counter.CountPass(q.Now, q.Tokens)
	}
	counted = true
}

// AskShadows asks the shadow rules, of which there are some, about a call that has passed.
func (c *Chain) AskShadows(q *Request, opts []Option, record *Record) {
	asked := 0
	defer func() {
		if asked < len(c.shadows) { // one has panicked
			record.LeaveShadows(q, asked)
		}
	}()
	for ; asked < len(c.shadows); asked++ {
		s := &c.shadows[asked]
		ticket, decision := s.Ask(q, opts)
		if decision == rule.Stale && ticket != 0 { // another goroutine has brought a later instant
			later := *q
			later.Now = clock.Instant(ticket)
			ticket, decision = s.Ask(&later, opts)
		}
		*record.slot(len(c.Steps) + asked) = ticketSlot{ticket, decision == rule.Pass}
		switch {
		case decision == rule.Pass || decision == rule.Stale:
			continue
		case s.demotesBy(ticket, decision):
			s.Refusals.Tally.Demoted.Add(1)
			continue
		}
		// Where the call would have to wait, nobody knows whether it would have passed:
		// it counts as refused, so that the shadow promises no more than the rule keeps.
		if would := s.Refusals.wouldRefuse(s.retryAfter(q, opts)); record.Refusal.Load() == nil {
			record.Refusal.Store(would)
		}
	}
}
