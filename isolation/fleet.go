package isolation

import (
	"math"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/places"
	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/leasedplaces"
	"github.com/penstock-go/penstock/rule"
)

const kindName = "isolation"

func isOfFleet(r *Rule) bool { return r.Scope == rule.ScopeFleet }

// fleetFields are the fields of limits of the whole fleet.
func fleetFields() []rule.Field[Rule] {
	return settings.FleetFields(func(r *Rule) *rule.Scope { return &r.Scope }, func(r *Rule) *rule.Fleet { return &r.Fleet })
}

// validateFleet adds the mistakes in how instances share the limit.
func (r *Rule) validateFleet(f *rule.Faults) {
	if !settings.ValidateFleet(f, r.Scope, r.Fleet) || r.Fleet.Mode == fleet.ModeLease {
		return
	}
	f.Add("fleet.mode", "is %q: instances share places by %q: remove it, or set it to that", r.Fleet.Mode, fleet.ModeLease)
}

// top is the limit of the word of a pool whose places are leased: what is allowed at present is below
// it by the places that are away.
const top = placesMask

// newLease returns the places of a rule of the whole fleet.
func newLease(r *Rule, env *rule.Env, p *pool) *leasedplaces.Places {
	key := settings.FleetKey(env, rule.Key{Kind: kindName, Name: r.Name}, r.Match != "")
	return sharing.Of(env.Fleet).Places(key, int64(r.Limit), keepsPlace(r), r.Fleet.OnOutage, p, env.Now)
}

// keepsPlace says whether the instance keeps a place for a call that comes after a long time: one
// that cannot wait would be refused.
func keepsPlace(r *Rule) bool { return r.MaxWait == 0 && r.Limit > 0 }

// sameKey says whether two versions of a rule have the same limit in the fleet.
func sameKey(a, b *Rule) bool { return a.Name == b.Name && (a.Match == "") == (b.Match == "") }

// LockPlaces implements [sharing.PlacesUser].
func (p *pool) LockPlaces(now clock.Instant) places.Use {
	p.lock(now)
	peak := p.highest.Swap(p.places)
	p.highestLooked = max(p.highestLooked, peak)
	return places.Use{
		InUse: int64(p.places), Waiting: int64(p.queue.Len()), Missed: int64(p.missed.Swap(0)), Peak: int64(peak),
	}
}

// UnlockPlaces implements [sharing.PlacesUser].
func (p *pool) UnlockPlaces(now clock.Instant) (later func()) {
	p.serve(now)
	if given := p.toTell; given > 0 {
		of := p.current
		p.toTell, later = 0, func() { of.tell(given) }
	}
	p.numbers.add(now, uint64(p.lease.Holder().Number()))
	p.publish()
	return later
}

// The methods below are called between lock and unlock.

// allowed is how many calls may be under way.
func (p *pool) allowed() uint64 {
	if p.lease == nil {
		return p.current.limit
	}
	return min(uint64(p.lease.Holder().Allowed()), top)
}

// takenPlaces is what the word has as the number of calls under way. If places are leased, those that
// are not here count as well, so that the word is at its top when no place is free. It stays so while
// more calls are under way than allowed: then givesBack is true, and ends go by the mutex.
func (p *pool) takenPlaces() uint64 {
	if p.lease == nil {
		return p.places
	}
	away := top - max(p.allowed(), p.places)
	p.away.Store(away)
	return p.places + away
}

// givesBack says whether the place of the next call that ends is not for another call.
func (p *pool) givesBack() bool {
	return p.lease != nil && (p.places > p.allowed() || p.lease.Holder().GivesBack())
}

// returned gives a place that has become free to the fleet, if that should have it.
func (p *pool) returned(now clock.Instant) {
	if p.lease != nil && p.lease.Holder().Ended(int64(p.places)) {
		p.lease.Wake(now)
	}
}

// lapse ends the lease of the places if its time is over.
func (p *pool) lapse(now clock.Instant) {
	if p.lease != nil {
		p.lease.Holder().Lapse(now, int64(p.places))
	}
}

func (p *pool) leaseEnd() clock.Instant {
	if p.lease == nil {
		return never
	}
	return p.lease.Holder().End()
}

// changeLease has the places go on by the version in force.
func (p *pool) changeLease(now clock.Instant) {
	if p.lease != nil {
		p.lease.Change(int64(p.current.rule.Limit), keepsPlace(&p.current.rule), now)
	}
}

// describeLease adds to a status what the instance has of the places of the fleet.
func (p *pool) describeLease(s *rule.Status) {
	for len(s.Gauges) < leaseGauges {
		s.Gauges = append(s.Gauges, math.NaN()) // of a rule without fairBy
	}
	of := p.lease.Holder().Status()
	s.Gauges = append(s.Gauges, float64(of.Held), float64(of.Wanted), float64(of.Target), float64(of.Instances))
}

// leaseGauges is how many gauges come before those of the fleet.
const leaseGauges = 9

// The methods below are called without the mutex.

// wakeLease has the member look whether the calls that wait need more places.
func (p *pool) wakeLease(now clock.Instant) {
	if p.lease != nil {
		p.lease.Wake(now)
	}
}

// miss counts a call that was refused because no place was free.
func (p *pool) miss(now clock.Instant) {
	p.missed.Add(1)
	p.lease.Wake(now)
}

// resumeLease has the places go on with the version that is in force now.
func (p *pool) resumeLease(l *limiter, now clock.Instant) {
	if p.lease != nil {
		p.lease.Resume(l.rule.Fleet.OnOutage, now)
	}
}

const never = clock.Instant(1<<63 - 1)

// PlaceNumber implements optional.Placed.
func (l *limiter) PlaceNumber(start clock.Instant, _ rule.Ticket) (uint64, bool) {
	p := l.pool
	if p.lease == nil {
		return 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.numbers.at(start), true
}

// numbers are the latest fencing numbers of a pool, and since when calls that begin have them.
type numbers struct {
	since  [8]clock.Instant
	number [8]uint64
	last   int
}

func (n *numbers) add(now clock.Instant, number uint64) {
	if number == n.number[n.last] {
		return
	}
	if n.number[n.last] != 0 {
		n.last = (n.last + 1) % len(n.number)
	}
	n.since[n.last], n.number[n.last] = now, number
}

// at returns the number of a call that began at an instant; the oldest that is known if that was
// before.
func (n *numbers) at(start clock.Instant) (number uint64) {
	for i := range n.number {
		at := (n.last + len(n.number) - i) % len(n.number)
		if n.number[at] == 0 {
			break
		}
		if number = n.number[at]; n.since[at] <= start {
			break
		}
	}
	return number
}
