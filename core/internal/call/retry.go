package call

import (
	"time"

	"github.com/penstock-go/penstock/rule"
)

// RetryAfter returns the RetryAfter of a call that a step refuses with an answer: the longest retry time
// of all steps; 0 if the step denies.
func (c *Chain) RetryAfter(a Answer, q *Request, opts []Option, held *HeldTickets) time.Duration {
	s := &c.Steps[a.Which]
	if s.Denies {
		return 0
	}
	wait := s.retryTime(a, q, opts)
	if wait == rule.Forbidden || len(c.Steps) == 1 {
		return wait
	}
	from := 0
	if a.isFirst { // the steps before it need no time
		from = a.Which + 1
	}
	return c.longest(from, a.Which, wait, q, opts, held)
}

// longest returns the longest of wait and the retry times of the steps from one on, other than the one
// with index but, those that deny, and those of which the call holds a ticket.
func (c *Chain) longest(from, but int, wait time.Duration, q *Request, opts []Option, held *HeldTickets) time.Duration {
	for i := from; i < len(c.Steps) && wait != rule.Never; i++ {
		s := &c.Steps[i]
		if i == but || s.Denies || s.demotes || held != nil && held.Has(i) {
			continue
		}
		if other := s.retryAfter(q, opts); other != rule.Forbidden {
			wait = max(wait, other)
		} else {
			wait = rule.Never // the rule that refuses has another reason
		}
	}
	return wait
}
