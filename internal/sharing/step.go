package sharing

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
)

// Step brings the member up to now, and returns the batches that are to be sent. For each,
// the caller calls Deliver or Fail, in any order. It may be called before it is due.
func (m *Member) Step(now clock.Instant) []*exchange.Batch {
	m.Mu.Lock()
	defer m.Unlock(now)
	l := m.limits
	m.Expire(now)
	l.askers.Expire(now)
	l.budgets.Step(now)
	l.places.Step(now)
	l.values.Step(now)
	l.askers.Step(now)
	return m.Batches(now)
}
