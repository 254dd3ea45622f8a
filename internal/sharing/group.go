package sharing

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/places"
)

// Group is the limits of one rule for many values, such as the users of a service: each has
// a [Budget] or an [Asker] of its own. The instance announces and shows them as one limit, in
// sum. They do not delay other limits, however many there are: these come first in each step,
// and have batches of their own.
type Group struct {
	member *Member

	// What follows is guarded by member.mu.
	byValue  countedCalls      // if it is of calls under way; else nil
	place    int               // in the list of all groups, -1 if released
	about    fleet.LimitStatus // what the rule says
	count    int               // of the budgets and askers
	refusing int               // of those for which the store does not count
	err      error             // what it said last
	counted  clock.Instant
	demand   average
	passed   average
	granted  average
}

// Group returns a group without limits. Of the terms it shows the key, the limit and the
// window. Release ends it.
func (m *Member) Group(terms fleet.Terms, mode fleet.Mode, onOutage fleet.OnOutage, now clock.Instant) *Group {
	g := &Group{member: m, counted: now}
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
	return g.member.newBudget(g, terms, fleet.ModeLease, onOutage, now)
}

// Asker is [Member.Asker], of one value. In an outage with [fleet.OutageLast], a value of which
// nothing passed of late has its share of the limit, as with [fleet.OutageShare].
func (g *Group) Asker(terms fleet.Terms, operation fleet.Operation, onOutage fleet.OnOutage) *Asker {
	return g.member.newAsker(g, terms, operation, onOutage)
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
	s.Demand, s.Passed, s.Granted = use.Demand, use.Passed, g.granted.perSecond()
	s.Outage = g.member.connection.out || g.refusing > 0
	if s.Outage {
		s.Granted, s.Since = g.passesNow(), g.member.connection.since
	}
	if g.refusing > 0 {
		s.Err = g.err
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
	return g.passed.perSecond()
}

func (g *Group) use(now clock.Instant) fleet.Use {
	if g.byValue != nil {
		inUse, waiting := g.byValue.calls()
		return fleet.Use{Key: g.about.Key, Demand: float64(inUse + waiting), Passed: float64(inUse)}
	}
	g.add(now, 0, 0, 0)
	return fleet.Use{Key: g.about.Key, Demand: g.demand.perSecond(), Passed: g.passed.perSecond()}
}

// groupMemory is the memory of the averages of a group.
const groupMemory = 2 * time.Second

// add counts what was asked for, has passed and was granted since it was called last, of one
// of the limits. The mutex of the member is held. A group may be nil: then nothing counts.
func (g *Group) add(now clock.Instant, asked, passed, granted int64) {
	if g == nil {
		return
	}
	elapsed := now.Sub(g.counted)
	g.demand.add(asked, elapsed, groupMemory)
	g.passed.add(passed, elapsed, groupMemory)
	g.granted.add(granted, elapsed, groupMemory)
	g.counted = max(g.counted, now)
}

// joined counts the limits, and left those that are gone.
func (g *Group) joined() {
	if g != nil {
		g.count++
	}
}

func (g *Group) left() {
	if g != nil {
		g.count--
	}
}

// refused notes that the store does not count for one of the limits, and accepted that it
// counts again.
func (g *Group) refused(err error) {
	if g != nil {
		g.refusing++
		g.err = err
	}
}

func (g *Group) accepted() {
	if g != nil {
		g.refusing--
	}
}

const (
	// maxGroupLooks is how many budgets of groups are looked at in one step, so that those
	// who wait for the mutex do not wait for long.
	maxGroupLooks = 256

	// maxGroupRequests is how many requests of groups are in one batch, so that the others
	// do not wait for long behind it.
	maxGroupRequests = 256
)

// Forget releases the budget if a new one would do the same: nothing is leased, owed or
// denied, and what has passed does not matter any more. It says whether it did: then Take
// refuses, and another budget of the limit takes over. It locks nothing if there is nothing
// to forget.
func (b *Budget) Forget(now clock.Instant) bool {
	if !b.IsNew(now) {
		return false
	}
	m := b.member
	m.mu.Lock()
	defer m.unlock(now)
	w := packedTokens(b.packed.Load())
	if b.refused.Load() > 0 {
		// The call may have been refused just when the budget became quiet.
		m.queue.set(b, min(b.due, now))
		return false
	}
	if b.released.Load() || !b.IsNew(now) || !w.isQuiet() || w.tokens() != b.expected() {
		return false
	}
	b.released.Store(true) // before calls find nothing
	if !b.packed.CompareAndSwap(uint64(w), uint64(pack(now.Add(forever), true, 0))) {
		b.released.Store(false) // a call came
		return false
	}
	b.debt = 0
	m.removeBudget(b)
	return true
}

// IsNew says whether a new budget would probably do the same. It locks nothing.
func (b *Budget) IsNew(now clock.Instant) bool {
	return packedTokens(b.packed.Load()).isQuiet() && clock.Instant(b.newAt.Load()) <= now
}

// IsReleased says whether the budget was released, so that Take refuses.
func (b *Budget) IsReleased() bool { return b.released.Load() }

// newFrom returns from when on the budget is as new, unless a call comes: never if that
// cannot be said.
func (b *Budget) newFrom() clock.Instant {
	if !b.isQuiet() || b.outage.active || b.owed > 0 || b.terms.Limit == 0 {
		return never
	}
	return max(b.lastCall.Add(maxLife), b.lastPass.Add(b.evenTime()), b.retryAt)
}

// Forget releases the asker if a new one would do the same: nothing was asked of late, no
// denial holds, and nothing is owed. It says whether it did.
func (a *Asker) Forget(now clock.Instant) bool {
	m := a.member
	m.mu.Lock()
	defer m.unlock(now)
	if a.place < 0 || a.outage.active || !a.isIdle(now) {
		return false
	}
	a.release()
	return true
}
