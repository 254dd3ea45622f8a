package ask

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/calendar"
)

// Status tells how the limit is at now.
func (a *Asker) Status(now clock.Instant) fleet.LimitStatus {
	a.set.Mu.Lock()
	defer a.set.Mu.Unlock()
	return a.status(now)
}

func (a *Asker) status(now clock.Instant) fleet.LimitStatus {
	use := a.usage(now)
	s := fleet.LimitStatus{
		Key: a.terms.Key, Mode: fleet.ModeAsk, OnOutage: a.onOutage, Limit: a.terms.Limit, Window: a.terms.Window,
		Granted: use.Passed, Demand: use.Demand, Passed: use.Passed,
		Outage: a.outage.Active, Since: a.outage.Since, Err: a.outage.Err, Retry: a.DeniedFor(now, 1),
		IsBalance: a.operation == fleet.AskBalance,
	}
	if a.outage.Active {
		s.Granted, s.Remaining = a.outage.Bucket.Passes(), a.outage.Bucket.Tokens()
	} else if left, until, known := a.known(now); known {
		s.Remaining, s.Retry = left, until
	}
	if a.terms.Calendar != nil {
		begin, end := calendar.WindowAt(a.terms.Calendar, a.terms.Window, a.set.TimeOf(now))
		s.Window = time.Duration(end-begin) * time.Microsecond
	}
	if s.IsBalance {
		_, _, s.IsCounted = a.known(now)
	} else {
		s.Used, s.IsCounted = a.told.At(now)
	}
	return s
}

// Known returns what the whole fleet has left of a fixed window, as of the last answer, and how long
// the window lasts; false if there was none in it. Of a balance it is what an answer of the last
// minute has said, and it lasts for 0.
func (a *Asker) Known(now clock.Instant) (left int64, lasts time.Duration, known bool) {
	a.set.Mu.Lock()
	defer a.set.Mu.Unlock()
	return a.known(now)
}

func (a *Asker) known(now clock.Instant) (left int64, lasts time.Duration, known bool) {
	switch {
	case a.leftUntil <= now:
		return 0, 0, false
	case a.operation == fleet.AskBalance:
		return max(0, a.balance.left.Load()), 0, true
	case a.operation != fleet.AskFixedWindow:
		return 0, 0, false
	}
	return max(0, a.balance.left.Load()), a.leftUntil.Sub(now), true
}

func (a *Asker) usage(now clock.Instant) fleet.Use {
	a.count(now)
	return fleet.Use{Key: a.terms.Key, Demand: a.demand.PerSecond(), Passed: a.passed.PerSecond()}
}
