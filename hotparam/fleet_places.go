package hotparam

import (
	"encoding/binary"
	"math"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/internal/pending"
	"github.com/penstock-go/penstock/internal/places"
	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/valueplaces"
	"github.com/penstock-go/penstock/internal/versions"
	"github.com/penstock-go/penstock/rule"
)

// placesLimiter is one version of a rule that limits how many calls of a value are under way in the
// whole fleet. A call asks the backend for a place, unless one is free here.
//
// Of the limiter of an instance it has all but the tables.
type placesLimiter struct {
	limiter
	fleet *placesResource
}

// placesStates is what this instance knows of the places of values of a rule, in all versions of the
// rule and on all resources that it guards.
type placesStates struct {
	*valueplaces.Places
	key       string // of the rule in the fleet
	resources int    // that the rule guards; fleetMu of the states guards it, and version
	version   uint64 // the latest that was activated
}

// placesResource is what the versions of a limiter have in common.
type placesResource struct {
	places *placesStates
	member *sharing.Member
	key    string // of the limit in the fleet: the values of each resource have places of their own

	mu       sync.Mutex // held by who changes versions
	versions versions.Versions
}

var (
	_ rule.Queue           = (*placesLimiter)(nil)
	_ optional.Decider     = (*placesLimiter)(nil)
	_ rule.Finisher        = (*placesLimiter)(nil)
	_ rule.Activator       = (*placesLimiter)(nil)
	_ rule.Retirer         = (*placesLimiter)(nil)
	_ rule.QuotaReader     = (*placesLimiter)(nil)
	_ optional.ValueKeeper = (*placesLimiter)(nil)
	_ optional.Placed      = (*placesLimiter)(nil)
)

// newPlacesLimiter returns a limiter of which no call is under way.
func newPlacesLimiter(env rule.Env) rule.Limiter {
	c := env.Compiled.(*compiled)
	r := &placesResource{
		member: sharing.Of(env.Fleet),
		key:    settings.FleetKey(&env, rule.Key{Kind: kindName, Name: c.rule.Name}, c.rule.Match != ""),
	}
	r.versions.Begin(c.version)
	states := c.statesFor(nil, env)
	r.places = states.placesFor(c, &env)
	return c.placesLimiter(states.newResource(), r, env)
}

// placesFor returns the places of the values of a rule, for another resource.
func (s *states) placesFor(c *compiled, env *rule.Env) *placesStates {
	s.fleetMu.Lock()
	defer s.fleetMu.Unlock()
	if s.places == nil {
		key := settings.FleetKey(env, rule.Key{Kind: kindName, Name: c.rule.Name}, false)
		s.places = &placesStates{
			Places: sharing.Of(env.Fleet).ValuePlaces(c.placesTerms(key), c.rule.MaxValues, c.rule.Fleet.OnOutage, env.Now),
			key:    key, version: c.version,
		}
	}
	s.places.resources++
	return s.places
}

// changePlaces goes over to the terms of a version, unless there is a newer one.
func (s *states) changePlaces(c *compiled, p *placesStates) {
	s.fleetMu.Lock()
	defer s.fleetMu.Unlock()
	if c.version > p.version {
		p.version = c.version
		p.Change(c.placesTerms(p.key), c.rule.MaxValues, c.rule.Fleet.OnOutage)
	}
}

// leavePlaces ends the places when no resource has them any more.
func (s *states) leavePlaces(p *placesStates, now clock.Instant) {
	s.fleetMu.Lock()
	defer s.fleetMu.Unlock()
	if p.resources--; p.resources > 0 {
		return
	}
	p.Release(now)
	if s.places == p {
		s.places = nil
	}
}

// adoptPlaces returns a newer version that goes on with the places of the present one; nil if it is
// about another attribute, or shares no places.
func adoptPlaces(present rule.Limiter, r *Rule, env rule.Env) rule.Limiter {
	former, ok := present.(*placesLimiter)
	c := env.Compiled.(*compiled)
	if !ok || former.rule.Param != r.Param || (former.rule.Match == "") != (r.Match == "") || !former.fleet.adopt(c.version) {
		return nil
	}
	c.statesFor(former.state.states, env)
	return c.placesLimiter(former.state, former.fleet, env)
}

func (c *compiled) placesLimiter(state *resourceState, shared *placesResource, env rule.Env) rule.Limiter {
	l := &placesLimiter{fleet: shared}
	l.init(c, state, env)
	return l
}

// placesTerms returns what is shown of the limit.
func (c *compiled) placesTerms(key string) fleet.Terms {
	return fleet.Terms{Key: key, Limit: float64(c.rule.Concurrency)}
}

// adopt notes that there is a newer version; false if the limiter has ended.
func (r *placesResource) adopt(version uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.versions.Adopt(version)
}

// callOf returns what the fleet is told of a call of a value.
func (l *placesLimiter) callOf(s subject, value rule.Attribute) valueplaces.Call {
	key := l.fleet.key
	if !value.IsSet() {
		key += "/missing" // no value has the digest of nothing with that key
	}
	d := digestOf(key, value)
	cell := l.cellOf(d, s.class)
	c := valueplaces.Call{ID: valueplaces.ID(d), Limit: int64(l.limits[s.class])}
	copy(c.Cell[:], "cell")
	binary.LittleEndian.PutUint64(c.Cell[4:], math.Float64bits(cell.limit))
	binary.LittleEndian.PutUint32(c.Cell[12:], uint32(cell.index))
	c.Cell[0] ^= byte(cell.index) // cells are on several nodes of a cluster, too
	return c
}

// withoutAsking returns for how long calls of a value are refused whatever the fleet says; 0 if they
// are not.
func (l *placesLimiter) withoutAsking(s subject, now clock.Instant) time.Duration {
	switch {
	case l.limits[s.class] == 0:
		return rule.Never
	case l.isPenalised(s, now):
		return l.penalties.left(s.key, now)
	}
	return 0
}

// Acquire has a call pass if a place of its value is free here. Else the fleet is asked.
func (l *placesLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	s, decision := l.subjectOf(c.Attribute)
	if decision != limited {
		return undecided(decision)
	}
	if wait := l.withoutAsking(s, c.Now); wait > 0 {
		return l.refuse(s, c, wait, false)
	}
	if l.version < l.fleet.versions.InForce() {
		return 0, rule.Stale
	}
	call := l.callOf(s, c.Attribute)
	switch ticket, state := l.fleet.places.Take(c.Now, &call); state {
	case exchange.Allowed:
		l.state.keep(c.Now, l.keeps)
		l.state.hottest.count(l.state.salt, c.Now, s.key, c.Attribute, true)
		return rule.Ticket(ticket), rule.Pass
	case exchange.Pending:
		return 0, rule.Wait
	case exchange.Released:
		return 0, rule.Stale
	}
	return l.refuse(s, c, 0, false)
}

// DecidesWithin implements [optional.Decider]: calls wait for late answers as long as the store counts what the
// instance has told.
func (l *placesLimiter) DecidesWithin() time.Duration {
	timeout := l.fleet.member.Timeout()
	return places.LifeOf(timeout) + timeout
}

// Join asks the backend.
func (l *placesLimiter) Join(c rule.Call, patience rule.Patience) (rule.Waiter, rule.Ticket, rule.Decision) {
	s, decision := l.subjectOf(c.Attribute)
	if decision != limited {
		return nil, 0, decision
	}
	if l.withoutAsking(s, c.Now) > 0 {
		l.refuse(s, c, 0, false)
		return nil, 0, rule.Block
	}
	if l.version < l.fleet.versions.InForce() {
		return nil, 0, rule.Stale
	}
	call := l.callOf(s, c.Attribute)
	w := &placesWaiter{limiter: l, subject: s, wait: l.fleet.places.Ask(c.Now, &call, patience.Wake)}
	w.Begin(w, patience.Wake)
	w.name.of = l.state.salt
	w.name.setName(c.Attribute)
	if ticket, _, decision := w.Poll(c.Now); decision != rule.Wait { // the answer is known already
		return nil, ticket, decision
	}
	return w, 0, rule.Wait
}

// placesWaiter is a call that waits for an answer.
type placesWaiter struct {
	pending.Call
	limiter *placesLimiter
	subject subject
	name    hotValue
	wait    *valueplaces.Wait
}

// Look implements [pending.Place].
func (w *placesWaiter) Look(now clock.Instant) time.Duration {
	l := w.limiter
	ticket, state := w.wait.Poll()
	switch state {
	case exchange.Pending:
		return 0
	case exchange.Released:
		w.Release()
		return 0
	case exchange.Allowed:
		w.Grant(rule.Ticket(ticket))
	case exchange.Denied:
		w.Refuse()
		if l.penalties != nil {
			l.penalties.refused(w.subject.key, now)
		}
	}
	l.state.keep(now, l.keeps)
	l.state.hottest.countNamed(now, w.subject.key, &w.name, state == exchange.Allowed)
	return 0
}

// Withdraw implements [pending.Place].
func (w *placesWaiter) Withdraw(now clock.Instant) {
	w.wait.Leave(now)
	w.End()
}

// GiveBack implements [pending.Place].
func (w *placesWaiter) GiveBack(now clock.Instant, _ rule.Ticket) { w.wait.Leave(now) }

// RetryAfter returns the rest of a penalty. When calls end, and a place becomes free, is unknown.
func (l *placesLimiter) RetryAfter(c rule.Call) time.Duration {
	s, decision := l.subjectOf(c.Attribute)
	switch decision {
	case rule.Pass:
		return 0
	case rule.Block:
		return rule.Forbidden
	}
	return l.withoutAsking(s, c.Now)
}

// GiveBack undoes an Acquire: another rule refused the call.
func (l *placesLimiter) GiveBack(now clock.Instant, ticket rule.Ticket, _ int32) {
	if ticket != 0 {
		l.fleet.places.End(now, uint64(ticket))
	}
}

// Done ends a call.
func (l *placesLimiter) Done(ticket rule.Ticket, e rule.Exit) { l.GiveBack(e.Now, ticket, 1) }

// PlaceNumber implements [optional.Placed].
func (l *placesLimiter) PlaceNumber(_ clock.Instant, ticket rule.Ticket) (uint64, bool) {
	if ticket == 0 {
		return 0, false
	}
	return l.fleet.places.Number(uint64(ticket)), true
}

// Settle does nothing: a call takes one place, whatever its tokens.
func (*placesLimiter) Settle(_, _ clock.Instant, _ rule.Ticket, _ int32) {}

// Activate puts this version in force, unless a newer one is.
func (l *placesLimiter) Activate(now clock.Instant) {
	r := l.fleet
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.versions.Activate(l.version) {
		return
	}
	l.state.changePlaces(l.compiled, r.places)
	if l.penalties != nil {
		l.penalties.configure(l.rule.Penalty, l.version)
	}
	if l.state.busyUntil.Load() > int64(now) {
		l.state.keep(now, l.keeps)
	}
}

// Retire ends all with this version, unless there is a newer one.
func (l *placesLimiter) Retire(now clock.Instant) {
	r := l.fleet
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.versions.Retire(l.version) {
		l.state.leavePlaces(r.places, now)
	}
}

// Idle says whether nothing is known of any value.
func (l *placesLimiter) Idle(now clock.Instant) bool {
	count, _ := l.fleet.places.Values()
	return count == 0 && l.limiter.Idle(now)
}

// Status returns the counts of the rule on this resource, and the hottest values.
func (l *placesLimiter) Status(now clock.Instant) rule.Status {
	count, without := l.fleet.places.Values()
	status := rule.Status{
		Gauges: []float64{float64(count), float64(l.rule.MaxValues), 0, float64(without), 0, 0},
		Values: l.state.hottest.of(l.state.salt, now, l.rule.Mask == rule.MaskHash),
	}
	if l.penalties != nil {
		status.Gauges[4], status.Gauges[5] = float64(l.penalties.running(now)), float64(l.penalties.begun.Load())
	}
	of := l.fleet.places.Status()
	status.Fleet = &rule.FleetStatus{Granted: of.Granted, Demand: of.Demand, Outage: of.Outage}
	return status
}

// QuotaOf tells nothing: the limit is of calls under way.
func (*placesLimiter) QuotaOf(rule.Call) *rule.Quota { return nil }

// ValueOf returns what this instance knows of the value of a call: the calls that are under way here.
func (l *placesLimiter) ValueOf(c rule.Call) optional.ValueState {
	s, decision := l.subjectOf(c.Attribute)
	if decision != limited {
		return optional.ValueState{Used: math.NaN(), Instance: true}
	}
	state := l.valueState(s, c)
	call := l.callOf(s, c.Attribute)
	state.Places, state.InFlight, state.Instance = call.Limit, l.fleet.places.InUse(call.ID), true
	return state
}

// ResetValue lifts the penalty of a value. Its calls end by themselves.
func (l *placesLimiter) ResetValue(c rule.Call) error {
	s, decision := l.subjectOf(c.Attribute)
	switch {
	case decision != limited:
		return errNoValue
	case l.penalties == nil:
		return errPlaces
	}
	l.penalties.lift(s.key)
	return nil
}
