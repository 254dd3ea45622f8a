package sharing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/packed"
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
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &m.connection
	s := fleet.Status{
		Instance: m.config.Instance, Connected: c.known && !c.out, Since: c.since,
		Err: cmp.Or(c.err, m.announceErr), Outages: c.outages, Latency: c.mean, Instances: m.known(),
		Batches: m.statistics.batches, Requests: m.statistics.requests, Lost: m.statistics.lost,
		Refusing: m.refusing,
	}
	for _, b := range m.budgets {
		if b.group == nil {
			s.Limits = append(s.Limits, b.status(now))
		}
	}
	for _, a := range m.askers {
		if a.group == nil {
			s.Limits = append(s.Limits, a.status(now))
		}
	}
	for _, p := range m.places {
		s.Limits = append(s.Limits, p.statusNow())
	}
	for _, g := range m.groups {
		s.Limits = append(s.Limits, g.status(now))
	}
	for _, share := range m.shares {
		s.Limits = append(s.Limits, share.Status(now))
	}
	return s
}

// known is the number of instances as the backend has told it, 0 if it never has.
func (m *Member) known() int {
	if m.counted == 0 {
		return 0
	}
	return m.count
}

// Fleet asks the backend for all instances and what they use; this announces the instance. Its
// error is that of the backend, or [fleet.ErrUnavailable] when the context ends or the timeout passes
// before, and after Run has ended, when the instance has left.
func (m *Member) Fleet(ctx context.Context) (fleet.Fleet, error) {
	if m.config.Backend == nil {
		return fleet.Fleet{}, fmt.Errorf("%w: there is no backend", fleet.ErrUnavailable)
	}
	timer := m.clock.NewTimer(m.config.Timeout)
	defer timer.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batch, err := m.announceAlone(ctx, timer)
	if err != nil {
		return fleet.Fleet{}, err
	}
	answered := make(chan error, 1)
	go func() { answered <- batch.Send(ctx, m.config.Backend) }()
	select {
	case err = <-answered:
	case <-timer.C():
		err = fmt.Errorf("%w within %v", fleet.ErrUnavailable, m.config.Timeout)
	case <-ctx.Done():
		err = fmt.Errorf("%w: %w", fleet.ErrUnavailable, ctx.Err())
	}
	m.mu.Lock()
	defer m.unlock(m.clock.Now())
	defer m.restIfUnused()
	if err != nil {
		m.endAnnouncement()
		return fleet.Fleet{}, err
	}
	m.takeFleet(m.clock.Now(), batch.Fleet, batch.announceErr)
	return batch.Fleet, batch.announceErr
}

// announceAlone returns an announcement when no other one is under way.
func (m *Member) announceAlone(ctx context.Context, timer clock.Timer) (*Batch, error) {
	for {
		m.mu.Lock()
		if m.hasLeft {
			m.mu.Unlock()
			return nil, fmt.Errorf("%w: the instance has left the fleet, its member does not run any more", fleet.ErrUnavailable)
		}
		if !m.announcing {
			defer m.unlock(m.clock.Now())
			return m.announcement(m.clock.Now(), true), nil
		}
		ended := m.announcementEnded
		m.mu.Unlock()
		select {
		case <-ended:
		case <-timer.C():
			return nil, fmt.Errorf("%w within %v", fleet.ErrUnavailable, m.config.Timeout)
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", fleet.ErrUnavailable, ctx.Err())
		}
	}
}

// Status tells how the limit is at now.
func (b *Budget) Status(now clock.Instant) fleet.LimitStatus {
	b.member.mu.Lock()
	defer b.member.mu.Unlock()
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

// Status tells how the limit is at now.
func (a *Asker) Status(now clock.Instant) fleet.LimitStatus {
	a.member.mu.Lock()
	defer a.member.mu.Unlock()
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
		begin, end := a.terms.WindowAt(clock.TimeOf(a.member.clock, now))
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
	a.member.mu.Lock()
	defer a.member.mu.Unlock()
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
