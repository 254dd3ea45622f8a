package lease

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/packed"
)

// Status tells how the limit is at now.
func (b *Budget) Status(now clock.Instant) fleet.LimitStatus {
	b.set.Mu.Lock()
	defer b.set.Mu.Unlock()
	return b.status(now)
}

func (b *Budget) status(now clock.Instant) fleet.LimitStatus {
	b.joinOutage(now)
	use := b.usage(now)
	s := fleet.LimitStatus{
		Key: b.terms.Key, Mode: b.mode, OnOutage: b.onOutage, Limit: b.terms.Limit, Window: b.terms.Window,
		Granted: b.granted.PerSecond(), Demand: use.Demand, Passed: use.Passed,
		Outage: b.outage.Active, Since: b.outage.Since, Err: b.outage.Err,
	}
	if s.Outage {
		s.Granted = b.passesNow()
	}
	if w := packed.Tokens(b.packed.Load()); !w.HasEnded(now) {
		s.Remaining = max(0, w.Tokens())
	}
	if b.retryAt > now {
		s.Retry = b.retryAt.Sub(now)
	}
	s.Used, s.IsCounted = b.told.At(now)
	return s
}

func (b *Budget) usage(now clock.Instant) fleet.Use {
	b.count(now)
	return fleet.Use{Key: b.terms.Key, Demand: b.demand.PerSecond(), Passed: b.passed.PerSecond()}
}
