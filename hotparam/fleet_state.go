package hotparam

import (
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/hotparam/internal/table"
	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/versions"
	"github.com/penstock-go/penstock/rule"
)

// fleetStates is what this instance knows of the limits that values of a rule have in the
// fleet, in all versions of the rule and on all resources that it guards.
type fleetStates struct {
	member *sharing.Member
	key    string // of the rule in the fleet
	table  atomic.Pointer[valueTable]
	group  atomic.Pointer[sharing.Group] // nil while the rule guards nothing
	cells  atomic.Pointer[[]*sharedValue]

	inCells     *table.Used // what sources have of the cells
	settles     atomic.Bool // the program settles calls
	forgotten   atomic.Uint64
	withoutSlot atomic.Uint64

	// Mutexes are locked in the order in which they stand, after them that of the member.
	mu        sync.Mutex // guards what follows
	version   uint64     // of the rule, the latest that was activated
	resources int        // that the rule guards

	cellsMu sync.Mutex // guards what follows, and writing cells
	byKey   map[cellKey]*sharedValue
	renewMu sync.Mutex // guards changes of terms
}

// fleetResource is what the versions of a limiter of a rule of the fleet have in common.
type fleetResource struct {
	*fleetStates
	limitKey string // of the limit in the fleet; those of values begin with it

	// own are the values that the rule names, and the calls without a value.
	own atomic.Pointer[map[uint64]*sharedValue]

	ownMu sync.Mutex // guards writing own

	versionMu sync.Mutex // held by who changes versions; locked before all others
	versions  versions.Versions
}

// fleetStatesFor returns the states of the rule in the fleet.
func (s *states) fleetStatesFor(c *compiled, env *rule.Env) *fleetStates {
	s.fleetMu.Lock()
	defer s.fleetMu.Unlock()
	if s.fleet == nil {
		key := settings.FleetKey(env, rule.Key{Kind: kindName, Name: c.rule.Name}, false)
		s.fleet = &fleetStates{
			member: sharing.Of(env.Fleet), key: key, byKey: make(map[cellKey]*sharedValue), inCells: table.NewUsed(cells),
		}
		s.fleet.table.Store(newValueTable(c.rule.MaxValues, 0))
		s.fleet.cells.Store(new([]*sharedValue))
	}
	return s.fleet
}

// newResource returns the state of a limiter, with no values.
func (s *fleetStates) newResource(c *compiled, env *rule.Env) *fleetResource {
	r := &fleetResource{
		fleetStates: s,
		limitKey:    settings.FleetKey(env, rule.Key{Kind: kindName, Name: c.rule.Name}, c.rule.Match != ""),
	}
	r.versions.Begin(c.version)
	r.keepFor(c)
	r.own.Store(new(map[uint64]*sharedValue))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resources++; s.resources == 1 {
		terms := c.fleetTerms(s.key, c.rule.Limit)
		s.group.Store(s.member.Group(terms, c.rule.decisionMode(), c.rule.Fleet.OnOutage, env.Now))
	}
	return r
}

// lock locks the shard of a value, in the table that is in force.
func (s *fleetStates) lock(key uint64) (*valueTable, *valueShard) {
	for {
		t := s.table.Load()
		shard := t.shard(key)
		if shard.Lock(); !shard.closed {
			return t, shard
		}
		shard.Unlock()
	}
}

// settleMemory is how long after its last call a value keeps its slot at least, if the program
// settles calls: calls of it may be under way.
const settleMemory = 10 * time.Minute

// keepFor notes whether calls settle by the version in any case.
func (s *fleetStates) keepFor(c *compiled) {
	if c.rule.Counts != "" || c.rule.Algorithm == Prepaid {
		s.settles.Store(true)
	}
}

// forgetBy returns by when a limit has to have been as new, to be forgotten now.
func (s *fleetStates) forgetBy(now clock.Instant) clock.Instant {
	if s.settles.Load() {
		return now.Add(-settleMemory)
	}
	return now
}

// newValue returns the limit of a value, by its terms.
func (s *fleetStates) newValue(c *compiled, terms fleet.Terms, now clock.Instant) *sharedValue {
	v := new(sharedValue)
	if c.rule.decisionMode() == fleet.ModeAsk {
		v.asker = s.group.Load().Asker(terms, c.rule.operation(), c.rule.Fleet.OnOutage)
	} else {
		v.budget = s.group.Load().Budget(terms, c.rule.Fleet.OnOutage, now)
	}
	v.version.Store(c.version)
	return v
}

// renew has a limit go over to a version of the rule, unless it has that of a newer one.
func (s *fleetStates) renew(v *sharedValue, c *compiled, terms fleet.Terms, now clock.Instant) {
	s.renewMu.Lock()
	defer s.renewMu.Unlock()
	if v.version.Load() >= c.version {
		return
	}
	if v.budget != nil {
		v.budget.Change(terms, c.rule.Fleet.OnOutage, now)
	} else {
		v.asker.Change(terms, c.rule.operation(), c.rule.Fleet.OnOutage, now)
	}
	v.version.Store(c.version)
}

// cell returns the limit of the values that share a cell.
func (s *fleetStates) cell(c *compiled, k cellKey, now clock.Instant) *sharedValue {
	s.cellsMu.Lock()
	defer s.cellsMu.Unlock()
	v := s.byKey[k]
	if v == nil {
		all := *s.cells.Load()
		v = s.newValue(c, c.fleetTerms(k.keyIn(s.key), k.limit), now)
		v.cell = len(all) + 1
		s.byKey[k] = v
		more := slices.Concat(all, []*sharedValue{v})
		s.cells.Store(&more)
	}
	return v
}

// enter returns the limit of a value and its slot, noSlot if it has none. The limit is made if
// there is none yet, or is that of the value's cell. It returns nil if the limiter has ended, or with
// needsSource if it has to know where the call comes from.
func (r *fleetResource) enter(
	c *compiled, s subject, value rule.Attribute, from table.Source, now clock.Instant,
) (*sharedValue, int) {
	t, shard := r.lock(s.key)
	defer shard.Unlock()
	if r.versions.Ended() {
		return nil, noSlot
	}
	if s.isOwn {
		return r.enterOwn(t, c, s, value, now), noSlot
	}
	v, slot := t.find(s.key)
	if v == nil {
		v = (*r.own.Load())[s.key] // the rule has named it before
	}
	if v != nil && v.version.Load() >= c.version {
		return v, slot
	}
	d := digestOf(r.limitKey, value)
	if v == nil {
		free, isLast, forgotten := t.free(s.key, r.forgetBy(now))
		r.forgotten.Add(forgotten)
		switch {
		case free >= 0 && (!isLast || t.holders.MayLast(from)):
		case from == table.UnknownSource:
			return nil, needsSource
		default:
			return r.enterCell(c, c.cellOf(d, s.class), now), noSlot
		}
		v, slot = r.add(c, s, d.keyOf(r.limitKey), now), free
		if isLast {
			v.last = from
		}
		t.put(slot, v)
	}
	r.renew(v, c, c.fleetTerms(d.keyOf(r.limitKey), c.limits[s.class]), now)
	return v, slot
}

// enterCell returns the limit of a cell.
func (r *fleetResource) enterCell(c *compiled, k cellKey, now clock.Instant) *sharedValue {
	r.withoutSlot.Add(1)
	v := r.cell(c, k, now)
	r.renew(v, c, c.fleetTerms(k.keyIn(r.key), k.limit), now)
	return v
}

// add makes the limit of a value.
func (r *fleetResource) add(c *compiled, s subject, key string, now clock.Instant) *sharedValue {
	v := r.newValue(c, c.fleetTerms(key, c.limits[s.class]), now)
	v.key, v.owner = s.key, r
	return v
}

// enterOwn returns the limit of a value that the rule names, or of the calls without one. The
// mutex of its shard is held.
func (r *fleetResource) enterOwn(t *valueTable, c *compiled, s subject, value rule.Attribute, now clock.Instant) *sharedValue {
	key := r.limitKey + "/missing"
	if value.IsSet() {
		key = digestOf(r.limitKey, value).keyOf(r.limitKey)
	}
	v := (*r.own.Load())[s.key]
	if v == nil {
		found, slot := t.find(s.key)
		if v = found; v == nil {
			v = r.add(c, s, key, now)
		}
		r.changeOwn(func(own map[uint64]*sharedValue) { own[s.key] = v })
		if slot >= 0 {
			t.remove(slot)
		}
	}
	r.renew(v, c, c.fleetTerms(key, c.limits[s.class]), now)
	return v
}

// changeOwn changes a copy of own.
func (r *fleetResource) changeOwn(change func(map[uint64]*sharedValue)) {
	r.ownMu.Lock()
	defer r.ownMu.Unlock()
	own := maps.Clone(*r.own.Load())
	if own == nil {
		own = make(map[uint64]*sharedValue)
	}
	change(own)
	r.own.Store(&own)
}

// adopt notes that there is a newer version; false if the limiter has ended.
func (r *fleetResource) adopt(number uint64) bool {
	r.versionMu.Lock()
	defer r.versionMu.Unlock()
	return r.versions.Adopt(number)
}

// activate puts a version into force. keys are those of the values that it names. Values that
// it does not name any more go to slots, if there are some.
func (r *fleetResource) activate(c *compiled, keys map[uint64]int, now clock.Instant) {
	r.versionMu.Lock()
	defer r.versionMu.Unlock()
	if !r.versions.Activate(c.version) {
		return
	}
	r.keepFor(c)
	r.resize(c, now)
	var former []uint64
	for key := range *r.own.Load() {
		if _, named := keys[key]; !named {
			former = append(former, key)
		}
	}
	for _, key := range former {
		t, shard := r.lock(key)
		if slot, _, _ := t.free(key, r.forgetBy(now)); slot >= 0 {
			t.put(slot, (*r.own.Load())[key])
			r.changeOwn(func(own map[uint64]*sharedValue) { delete(own, key) })
		}
		shard.Unlock()
	}
}

// resize goes over to the size and the terms of a version, unless there is a newer one.
func (s *fleetStates) resize(c *compiled, now clock.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.version <= s.version {
		return
	}
	s.version = c.version
	if g := s.group.Load(); g != nil {
		g.Change(c.fleetTerms(s.key, c.rule.Limit), c.rule.decisionMode(), c.rule.Fleet.OnOutage)
	}
	if t := s.table.Load(); len(newValueTable(c.rule.MaxValues, 0).values) != len(t.values) {
		s.table.Store(t.moved(c.rule.MaxValues, now))
	}
}

// retire ends all with a version, unless there is a newer one.
func (r *fleetResource) retire(number uint64, now clock.Instant) {
	r.versionMu.Lock()
	defer r.versionMu.Unlock()
	if !r.versions.Retire(number) {
		return
	}
	r.forEach(func(t *valueTable, slot int, v *sharedValue) {
		v.release(now)
		if slot >= 0 {
			t.remove(slot)
		}
	})
	r.own.Store(new(map[uint64]*sharedValue))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.resources--; r.resources > 0 {
		return
	}
	r.cellsMu.Lock()
	defer r.cellsMu.Unlock()
	for _, v := range *r.cells.Load() {
		v.release(now)
	}
	clear(r.byKey)
	r.cells.Store(new([]*sharedValue))
	r.group.Load().Release()
	r.group.Store(nil)
}

// forEach calls f for the limits of all values of the limiter, with the slots of those that
// have one, else -1. The table does not change meanwhile, but for what f does.
func (r *fleetResource) forEach(f func(t *valueTable, slot int, v *sharedValue)) {
	r.mu.Lock() // so that the table stays
	defer r.mu.Unlock()
	t := r.table.Load()
	t.each(func(slot int, v *sharedValue) {
		if v.owner == r {
			f(t, slot, v)
		}
	})
	for _, v := range *r.own.Load() {
		f(t, -1, v)
	}
}

// forgetAll forgets the limits of all values that are as new, and says whether that are all.
func (r *fleetResource) forgetAll(now clock.Instant) (all bool) {
	all = true
	r.forEach(func(t *valueTable, slot int, v *sharedValue) {
		switch {
		case !v.forget(now):
			all = false
		case slot >= 0:
			t.remove(slot)
		default:
			r.changeOwn(func(own map[uint64]*sharedValue) { delete(own, v.key) })
		}
	})
	return all
}

// ticket returns the ticket of a call that has taken from a limit.
func (r *fleetResource) ticket(v *sharedValue, slot int, isOwn bool) rule.Ticket {
	switch t := r.table.Load(); {
	case v.cell > 0:
		return cellTicket | rule.Ticket(v.cell)
	case isOwn:
		return keyTicket | ownTicket | ticketKey(v.key)
	case slot < 0 || t.number > 0 || r.settles.Load():
		return keyTicket | ticketKey(v.key)
	default:
		return t.slotTicket(slot, v.key)
	}
}

// valueOf returns the limit that a call has taken from, by its ticket; nil if it was
// forgotten meanwhile.
func (r *fleetResource) valueOf(ticket rule.Ticket) *sharedValue {
	t := r.table.Load()
	switch {
	case ticket&keyTicket != 0:
		key, _ := keyIn(ticket)
		if v := (*r.own.Load())[key]; v != nil {
			return v
		}
		v, _ := t.find(key)
		return v
	case ticket&cellTicket != 0:
		number := int(ticket & math.MaxInt32)
		if all := *r.cells.Load(); number <= len(all) {
			return all[number-1]
		}
		return nil
	case ticket == 0 || t.number > 0:
		return nil
	}
	return t.valueIn(ticket)
}
