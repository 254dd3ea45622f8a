package sharing

import (
	"math"
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/ask"
	"github.com/penstock-go/penstock/internal/sharing/lease"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// Group is the limits of one rule for many values, such as the users of a service: each has
// a [Budget] or an [Asker] of its own. The instance announces and shows them as one limit, in
// sum. They do not delay other limits, however many there are: these come first in each step,
// and have batches of their own.
type Group struct {
	member *Member

	// What follows is guarded by member.mu.
	about fleet.LimitStatus // what the rule says
	tally *usage.Tally
}

// Group returns a group without limits. Of the terms it shows the key, the limit and the
// window. Release ends it.
func (m *Member) Group(terms fleet.Terms, mode fleet.Mode, onOutage fleet.OnOutage, now clock.Instant) *Group {
	g := &Group{member: m, tally: usage.NewTally(now)}
	m.Mu.Lock()
	defer m.Unlock(now)
	g.describe(terms, mode, onOutage)
	m.limits.groups = append(m.limits.groups, g)
	m.Join(now)
	return g
}

func (g *Group) describe(terms fleet.Terms, mode fleet.Mode, onOutage fleet.OnOutage) {
	g.about = fleet.LimitStatus{Key: terms.Key, Mode: mode, OnOutage: onOutage, Limit: terms.Limit, Window: terms.Window}
}

// Budget is [Member.Budget], of one value.
func (g *Group) Budget(terms fleet.Terms, onOutage fleet.OnOutage, now clock.Instant) *lease.Budget {
	return g.member.limits.budgets.New(g.tally, terms, fleet.ModeLease, onOutage, now)
}

// Asker is [Member.Asker], of one value. In an outage with [fleet.OutageLast], a value of which
// nothing passed of late has its share of the limit, as with [fleet.OutageShare].
func (g *Group) Asker(terms fleet.Terms, operation fleet.Operation, onOutage fleet.OnOutage) *ask.Asker {
	g.member.Mu.Lock()
	g.about.IsBalance = operation == fleet.AskBalance
	g.member.Mu.Unlock()
	return g.member.limits.askers.New(g.tally, terms, operation, onOutage)
}

// Change shows other terms from now on. The limits of the values are changed one by one.
func (g *Group) Change(terms fleet.Terms, mode fleet.Mode, onOutage fleet.OnOutage) {
	g.member.Mu.Lock()
	defer g.member.Mu.Unlock()
	g.describe(terms, mode, onOutage)
}

// Release says that the group is not needed any more. Its limits are released one by one.
func (g *Group) Release() {
	m := g.member
	m.Mu.Lock()
	defer m.Mu.Unlock()
	if i := slices.Index(m.limits.groups, g); i >= 0 {
		m.limits.groups = slices.Delete(m.limits.groups, i, i+1)
		m.Left()
	}
}

// Status tells how the limits are, in sum.
func (g *Group) Status(now clock.Instant) fleet.LimitStatus {
	g.member.Mu.Lock()
	defer g.member.Mu.Unlock()
	return g.status(now)
}

func (g *Group) status(now clock.Instant) fleet.LimitStatus {
	s, use := g.about, g.use(now)
	s.Demand, s.Passed, s.Granted = use.Demand, use.Passed, g.tally.Granted.PerSecond()
	s.Outage = g.member.IsOut() || g.tally.Refusing > 0
	if s.Outage {
		s.Granted, s.Since = g.passesNow(), g.member.OutSince()
	}
	if g.tally.Refusing > 0 {
		s.Err = g.tally.Err
	}
	return s
}

// passesNow is how many tokens per second pass in an outage: as many as of late, unless there
// is no limit or nothing may pass.
func (g *Group) passesNow() float64 {
	switch {
	case g.about.OnOutage == fleet.OutageOpen && g.about.Limit > 0:
		return math.Inf(1)
	case g.about.OnOutage == fleet.OutageClosed:
		return 0
	}
	return g.tally.Passed.PerSecond()
}

func (g *Group) use(now clock.Instant) fleet.Use {
	g.tally.Add(now, 0, 0, 0)
	return fleet.Use{Key: g.about.Key, Demand: g.tally.Demand.PerSecond(), Passed: g.tally.Passed.PerSecond()}
}
