package sharing

import (
	"math"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/places"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// Group is the limits of one rule for many values, such as the users of a service: each has
// a [Budget] or an [Asker] of its own. The instance announces and shows them as one limit, in
// sum. They do not delay other limits, however many there are: these come first in each step,
// and have batches of their own.
type Group struct {
	member *Member

	// What follows is guarded by member.mu.
	byValue countedCalls      // if it is of calls under way; else nil
	place   int               // in the list of all groups, -1 if released
	about   fleet.LimitStatus // what the rule says
	tally   *usage.Tally
}

// Group returns a group without limits. Of the terms it shows the key, the limit and the
// window. Release ends it.
func (m *Member) Group(terms fleet.Terms, mode fleet.Mode, onOutage fleet.OnOutage, now clock.Instant) *Group {
	g := &Group{member: m, tally: usage.NewTally(now)}
	m.mu.Lock()
	defer m.unlock(now)
	g.describe(terms, mode, onOutage)
	g.place = len(m.groups)
	m.groups = append(m.groups, g)
	m.announceSoon(now)
	return g
}

func (g *Group) describe(terms fleet.Terms, mode fleet.Mode, onOutage fleet.OnOutage) {
	g.about = fleet.LimitStatus{Key: terms.Key, Mode: mode, OnOutage: onOutage, Limit: terms.Limit, Window: terms.Window}
}

// Budget is [Member.Budget], of one value.
func (g *Group) Budget(terms fleet.Terms, onOutage fleet.OnOutage, now clock.Instant) *Budget {
	return g.member.newBudget(g.tally, terms, fleet.ModeLease, onOutage, now)
}

// Asker is [Member.Asker], of one value. In an outage with [fleet.OutageLast], a value of which
// nothing passed of late has its share of the limit, as with [fleet.OutageShare].
func (g *Group) Asker(terms fleet.Terms, operation fleet.Operation, onOutage fleet.OnOutage) *Asker {
	g.member.mu.Lock()
	g.about.IsBalance = operation == fleet.AskBalance
	g.member.mu.Unlock()
	return g.member.newAsker(g.tally, terms, operation, onOutage)
}

// Change shows other terms from now on. The limits of the values are changed one by one.
func (g *Group) Change(terms fleet.Terms, mode fleet.Mode, onOutage fleet.OnOutage) {
	g.member.mu.Lock()
	defer g.member.mu.Unlock()
	g.describe(terms, mode, onOutage)
}

// Release says that the group is not needed any more. Its limits are released one by one.
func (g *Group) Release() {
	m := g.member
	m.mu.Lock()
	defer m.mu.Unlock()
	if g.place < 0 {
		return
	}
	removeFrom(&m.groups, g)
	m.restIfUnused()
}

// Status tells how the limits are, in sum.
func (g *Group) Status(now clock.Instant) fleet.LimitStatus {
	g.member.mu.Lock()
	defer g.member.mu.Unlock()
	return g.status(now)
}

func (g *Group) status(now clock.Instant) fleet.LimitStatus {
	s, use := g.about, g.use(now)
	s.Demand, s.Passed, s.Granted = use.Demand, use.Passed, g.tally.Granted.PerSecond()
	s.Outage = g.member.connection.out || g.tally.Refusing > 0
	if s.Outage {
		s.Granted, s.Since = g.passesNow(), g.member.connection.since
	}
	if g.tally.Refusing > 0 {
		s.Err = g.tally.Err
	}
	if g.byValue != nil {
		inUse, waiting := g.byValue.calls()
		s.Places = &fleet.PlacesStatus{InUse: inUse, Waiting: waiting, Status: places.Status{
			Limit: int64(s.Limit), Held: inUse, Wanted: inUse + waiting, Target: inUse, Instances: int64(g.member.count),
		}}
	}
	return s
}

// passesNow is how many tokens per second pass in an outage: as many as of late, unless there
// is no limit or nothing may pass. Of calls under way it is how many of a value may be.
func (g *Group) passesNow() float64 {
	switch {
	case g.about.OnOutage == fleet.OutageOpen && g.about.Limit > 0:
		return math.Inf(1)
	case g.about.OnOutage == fleet.OutageClosed:
		return 0
	case g.byValue != nil:
		return float64(g.byValue.allowed(int64(g.about.Limit)))
	}
	return g.tally.Passed.PerSecond()
}

func (g *Group) use(now clock.Instant) fleet.Use {
	if g.byValue != nil {
		inUse, waiting := g.byValue.calls()
		return fleet.Use{Key: g.about.Key, Demand: float64(inUse + waiting), Passed: float64(inUse)}
	}
	g.tally.Add(now, 0, 0, 0)
	return fleet.Use{Key: g.about.Key, Demand: g.tally.Demand.PerSecond(), Passed: g.tally.Passed.PerSecond()}
}

const (
	// maxGroupLooks is how many budgets of groups are looked at in one step, so that those
	// who wait for the mutex do not wait for long.
	maxGroupLooks = 256

	// maxGroupRequests is how many requests of groups are in one batch, so that the others
	// do not wait for long behind it.
	maxGroupRequests = 256
)
