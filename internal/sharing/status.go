package sharing

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

// Status tells how the member is at now.
func (m *Member) Status(now clock.Instant) fleet.Status {
	s := m.statusOfAll(now)
	slices.SortFunc(s.Limits, func(a, b fleet.LimitStatus) int { // when decisions need not wait for it
		return cmp.Or(cmp.Compare(b.Demand, a.Demand), cmp.Compare(a.Key, b.Key))
	})
	s.Limits = slices.Clip(s.Limits[:min(len(s.Limits), fleet.MaxUses)])
	slices.SortStableFunc(s.Limits, func(a, b fleet.LimitStatus) int { return cmp.Compare(a.Key, b.Key) })
	return s
}

// statusOfAll is Status with all limits, in no order.
func (m *Member) statusOfAll(now clock.Instant) fleet.Status {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	s := m.Exchange.Status()
	s.Limits = m.limits.status(now)
	return s
}
