package hotparam

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/hotparam/internal/table"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// fleetLimiter is one version of a rule whose limit each value has in the whole fleet. To pass
// takes tokens that the instance has leased for the value: no call waits for the network.
//
// Of the limiter of an instance it has all but the tables.
type fleetLimiter struct {
	limiter
	fleet *fleetResource
}

var (
	_ rule.Settler   = (*fleetLimiter)(nil)
	_ rule.Activator = (*fleetLimiter)(nil)
	_ rule.Retirer   = (*fleetLimiter)(nil)
)

// newFleetLimiter returns a limiter that counts nothing yet.
func newFleetLimiter(env rule.Env) rule.Limiter {
	c := env.Compiled.(*compiled)
	states := c.statesFor(nil, env)
	return c.fleetLimiter(states.newResource(), states.fleetStatesFor(c, &env).newResource(c, &env), env)
}

// adoptFleet returns a newer version that goes on with what the present one shares; nil if it
// is about another attribute, or shares it in another way.
func adoptFleet(present rule.Limiter, r *Rule, env rule.Env) rule.Limiter {
	is, ok := present.(interface{ ofFleet() *fleetLimiter })
	if !ok {
		return nil
	}
	former, c := is.ofFleet(), env.Compiled.(*compiled)
	old := &former.rule
	if old.Param != r.Param || old.Algorithm != r.Algorithm || old.decisionMode() != r.decisionMode() ||
		(old.Match == "") != (r.Match == "") || !former.fleet.adopt(c.version) {
		return nil
	}
	c.statesFor(former.state.states, env)
	return c.fleetLimiter(former.state, former.fleet, env)
}

func (c *compiled) fleetLimiter(state *resourceState, shared *fleetResource, env rule.Env) rule.Limiter {
	if c.rule.decisionMode() == fleet.ModeAsk {
		l := new(askLimiter)
		l.init(c, state, env)
		l.fleet = shared
		return l
	}
	l := new(fleetLimiter)
	l.init(c, state, env)
	l.fleet = shared
	return l
}

func (l *fleetLimiter) ofFleet() *fleetLimiter { return l }

// find returns the limit of a value and its slot, noSlot if it has none. It makes the limit if
// need be. nil: the rule is gone, or a newer version of it is in force, or with needsSource where the
// call comes from has to be known.
func (l *fleetLimiter) find(s subject, c rule.Call, from table.Source) (v *sharedValue, slot int) {
	if l.version < l.fleet.versions.InForce() {
		return nil, noSlot
	}
	if v, slot = l.known(s); v == nil || v.version.Load() < l.version {
		if v, slot = l.fleet.enter(l.compiled, s, c.Attribute, from, c.Now); v != nil && v.cell > 0 {
			l.noteFull()
		}
	}
	return v, slot
}

// known returns the limit of a value, if there is one, and its slot.
func (l *fleetLimiter) known(s subject) (*sharedValue, int) {
	if s.isOwn {
		return (*l.fleet.own.Load())[s.key], noSlot
	}
	return l.fleet.table.Load().find(s.key)
}

// without is the decision on a call that find has found nothing for.
func without(slot int) rule.Decision {
	if slot == needsSource {
		return optional.NeedsSource
	}
	return rule.Stale
}

// mayCell says whether a call takes of the limit of a cell: the calls of one source may together pass
// there what one value may.
func (l *fleetLimiter) mayCell(s subject, c rule.Call, from table.Source) bool {
	limit := l.limits[s.class]
	most, capacity := l.rule.fullAfter(limit), limit
	if l.rule.Algorithm == TokenBucket {
		capacity = l.rule.burst(limit)
	}
	return l.fleet.inCells.TakeShared(from, c.Now, durationOf(float64(most)/capacity*float64(c.Tokens)), most)
}

// Acquire takes what the call takes of the tokens that the instance has leased for its value.
func (l *fleetLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	return l.acquire(c, l.unknownSource())
}

// AcquireFrom decides on a call of which is known where it comes from.
func (l *fleetLimiter) AcquireFrom(c rule.Call, source rule.Attribute) (rule.Ticket, rule.Decision) {
	return l.acquire(c, l.sourceOf(source))
}

func (l *fleetLimiter) acquire(c rule.Call, from table.Source) (rule.Ticket, rule.Decision) {
	s, decision := l.subjectOf(c.Attribute)
	if decision != limited {
		return undecided(decision)
	}
	if wait := l.withoutAsking(s, c); wait > 0 {
		return l.refuse(s, c, wait, false)
	}
	for {
		v, slot := l.find(s, c, from)
		switch {
		case v == nil:
			return 0, without(slot)
		case v.cell > 0 && !l.mayCell(s, c, from):
			return l.refuse(s, c, 0, true)
		case v.budget.Take(c.Now, c.Tokens):
			l.state.keep(c.Now, l.keeps)
			l.state.hottest.count(l.state.salt, c.Now, s.key, c.Attribute, true)
			return l.fleet.ticket(v, slot, s.isOwn), rule.Pass
		case !v.budget.IsReleased():
			return l.refuse(s, c, v.budget.RetryAfter(c.Now, c.Tokens), v.cell > 0)
		}
	}
}

// withoutAsking returns for how long calls of a value are refused whatever the fleet says; 0
// if they are not.
func (l *fleetLimiter) withoutAsking(s subject, c rule.Call) time.Duration {
	switch {
	case l.limits[s.class] == 0 && l.rule.Algorithm != Prepaid:
		return rule.Never
	case l.isPenalised(s, c.Now):
		return max(l.penalties.left(s.key, c.Now), l.wait(s, c))
	}
	return 0
}

// wait returns how long it takes until the limit lets such a call pass; 0 if that is not
// known.
func (l *fleetLimiter) wait(s subject, c rule.Call) time.Duration {
	switch v, _ := l.known(s); {
	case v == nil:
		return 0
	case l.rule.Algorithm == Prepaid: // somebody has to recharge it
		return 0
	case v.asker != nil:
		return v.asker.DeniedFor(c.Now, c.Tokens)
	case v.budget.Has(c.Now, c.Tokens):
		return 0
	default:
		return v.budget.RetryAfter(c.Now, c.Tokens)
	}
}

// RetryAfter returns how long it takes until such a call passes: the rest of a penalty, or
// until the fleet grants tokens, whichever is longer.
func (l *fleetLimiter) RetryAfter(c rule.Call) time.Duration {
	s, decision := l.subjectOf(c.Attribute)
	switch decision {
	case rule.Pass:
		return 0
	case rule.Block:
		return rule.Forbidden
	}
	return max(l.withoutAsking(s, c), l.wait(s, c))
}

// GiveBack gives back what Acquire took.
func (l *fleetLimiter) GiveBack(now clock.Instant, t rule.Ticket, tokens int32) {
	if v := l.fleet.valueOf(t); v != nil {
		v.giveBack(now, tokens)
	}
}

// Settle corrects what a call took that passed at start. What it took more is owed to the
// fleet if the instance has not leased it.
func (l *fleetLimiter) Settle(now, start clock.Instant, t rule.Ticket, tokens int32) {
	if t == 0 {
		return
	}
	if !l.fleet.settles.Load() {
		l.fleet.settles.Store(true)
	}
	if tokens > 0 {
		l.state.keep(now, addDuration(l.keeps, durationOf(float64(tokens)*l.slowest)))
	}
	if v := l.fleet.valueOf(t); v != nil {
		v.settle(start, tokens)
	}
}

// Activate puts this version in force, unless a newer one is.
func (l *fleetLimiter) Activate(now clock.Instant) {
	keys := l.namedKeys()
	if l.rule.Missing == rule.MissingShare {
		s, _ := l.subjectOf(rule.Attribute{})
		if keys == nil {
			keys = make(map[uint64]int)
		}
		keys[s.key] = 0
	}
	l.fleet.activate(l.compiled, keys, now)
	if l.penalties != nil {
		l.penalties.configure(l.rule.Penalty, l.version)
	}
	if l.state.busyUntil.Load() > int64(now) {
		l.state.keep(now, l.keeps)
	}
}

// Retire hands back what is leased: the rule is gone.
func (l *fleetLimiter) Retire(now clock.Instant) { l.fleet.retire(l.version, now) }

// Idle says whether the limits of all values are as new.
func (l *fleetLimiter) Idle(now clock.Instant) bool {
	return l.limiter.Idle(now) && l.fleet.forgetAll(now)
}

// Status returns the counts of the rule, which are those of all resources together, and the
// hottest values of this resource.
func (l *fleetLimiter) Status(now clock.Instant) rule.Status {
	status := l.limiter.Status(now)
	f := l.fleet
	status.Gauges[0] = float64(f.table.Load().occupied(now))
	status.Gauges = status.Gauges[:gaugeBytes] // limits of the fleet are no table
	status.Gauges[2], status.Gauges[3] = float64(f.forgotten.Load()), float64(f.withoutSlot.Load())
	if g := f.group.Load(); g != nil {
		of := g.Status(now)
		status.Fleet = &rule.FleetStatus{Granted: of.Granted, Demand: of.Demand, Outage: of.Outage}
	}
	return status
}
