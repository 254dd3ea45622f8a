// Package leasedplaces is the limits on calls under way of which an instance of a fleet leases places.
package leasedplaces

import (
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/places"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
)

// User is a limiter of calls under way whose places are those of a [Places]. It guards the
// holder with its lock.
type User interface {
	// LockPlaces locks the limiter, and tells what its calls do. The holder may be used until
	// UnlockPlaces. A member calls it while it is locked itself: the limiter must not call the
	// member then, but for [Places.Wake] and [Places.Holder].
	LockPlaces(now clock.Instant) places.Use

	// UnlockPlaces has as many calls pass from now on as the holder allows. It returns what is
	// to be called when the member is not locked any more, or nil.
	UnlockPlaces(now clock.Instant) (later func())
}

// Set is the leased places of one instance.
type Set struct {
	*exchange.Exchange

	woken atomic.Pointer[Places] // those that calls have woken since the last step
	all   []*Places              // guarded by Mu
}

// Places is what an instance has of a limit on the calls under way in the whole fleet: places that
// it has leased, and keeps from call to call. No call asks the backend.
type Places struct {
	set    *Set
	key    string
	user   User
	holder *places.Holder // guarded by the lock of the user

	isWoken   atomic.Bool // it is in the list of those that calls have woken, or will be
	nextWoken *Places     // in that list; written by whoever has set isWoken

	// What follows is guarded by Mu of the exchange.
	place    int // in the list of all, -1 if it is gone
	onOutage fleet.OnOutage
	due      clock.Instant
	isTaken  bool // from the list of those that are woken, and not looked at since
	isGone   bool // it ends with its last call
	lost     int  // claims without an answer in a row
	err      error
	retryAt  clock.Instant // when to claim again although the backend has refused
	since    clock.Instant // of the outage
	looked   clock.Instant
	status   places.Status // when it was looked at last
	use      places.Use
}

// New returns the places of a limit, of which the instance has none yet. Nothing happens before
// Start. keeps says that a place is to be kept for the first call, however long ago the last one was.
func (set *Set) New(key string, limit int64, keeps bool, onOutage fleet.OnOutage, user User, now clock.Instant) *Places {
	return &Places{
		set: set, key: key, user: user, onOutage: onOutage, place: -1, due: now,
		holder: places.NewHolder(limit, places.LifeOf(set.Timeout()), keeps, now),
	}
}

// Start has the member claim places from now on.
func (p *Places) Start(now clock.Instant) {
	p.set.Mu.Lock()
	defer p.set.Unlock(now)
	p.start(now)
}

func (p *Places) start(now clock.Instant) {
	set := p.set
	p.place = len(set.all)
	set.all = append(set.all, p)
	set.Join(now)
	switch {
	case !set.CanCount():
		p.refusedBy(now, set.CheckPlaces())
		p.retryAt = exchange.Never
	case set.IsOut():
		p.begin(now)
	}
}

// Holder returns the holder, for whoever has the lock of the user.
func (p *Places) Holder() *places.Holder { return p.holder }

// Change has the limit go on with other terms. The caller has the lock of the user.
func (p *Places) Change(limit int64, keeps bool, now clock.Instant) {
	p.holder.SetLimit(limit, keeps)
	p.Wake(now)
}

// Resume has the limit go on as onOutage says when that is needed, even if it was released. The user
// is not locked.
func (p *Places) Resume(onOutage fleet.OnOutage, now clock.Instant) {
	set := p.set
	set.Mu.Lock()
	defer set.Unlock(now)
	p.onOutage, p.isGone, p.due = onOutage, false, now
	p.locked(now, func(places.Use) {
		p.holder.Return()
		if p.holder.Outage() != places.Connected {
			p.holder.Begin(set.placesOutage(p.onOutage))
		}
	})
	if p.place < 0 {
		p.start(now)
	}
}

// Release says that the limit is not needed any more: its places go back as its calls end. The user
// is not locked.
func (p *Places) Release(now clock.Instant) {
	set := p.set
	set.Mu.Lock()
	defer set.Unlock(now)
	p.isGone, p.due = true, now
	p.locked(now, func(places.Use) { p.holder.Leave() })
}

// Wake has the member look at the places soon: calls find none, or some are to be given back. It
// locks nothing.
func (p *Places) Wake(now clock.Instant) {
	if !p.isWoken.Load() && p.isWoken.CompareAndSwap(false, true) {
		p.putIntoWoken(now)
	}
}

// putIntoWoken is for whoever has set isWoken.
func (p *Places) putIntoWoken(now clock.Instant) {
	set := p.set
	for {
		p.nextWoken = set.woken.Load()
		if set.woken.CompareAndSwap(p.nextWoken, p) {
			break
		}
	}
	set.Hasten(now)
}

// locked calls f while the user is locked. The mutex is held.
func (p *Places) locked(now clock.Instant, f func(places.Use)) {
	f(p.user.LockPlaces(now))
	p.status = p.holder.Status()
	if later := p.user.UnlockPlaces(now); later != nil {
		p.set.Later(later)
	}
}

// look brings the places up to now, and returns the claim that is to be made, if there is one.
func (p *Places) look(now clock.Instant) (claim places.Claim, isDue bool) {
	set := p.set
	p.looked = now
	p.locked(now, func(use places.Use) {
		p.use = use
		if p.retryAt > 0 && now >= p.retryAt {
			p.holder.Retry()
			p.retryAt = 0
		}
		claim, isDue = p.holder.Look(now, use)
		p.due = p.holder.Due()
		if p.isGone && use.InUse == 0 {
			claim, isDue = p.holder.Last(use), true
		}
	})
	if p.retryAt > 0 {
		p.due = min(p.due, p.retryAt)
	}
	claim.Instance = set.ClaimID()
	return claim, isDue
}

// Status tells how the places are, as they were looked at last.
func (p *Places) statusNow() fleet.LimitStatus {
	s := fleet.LimitStatus{
		Key: p.key, Mode: fleet.ModeLease, OnOutage: p.onOutage, Limit: float64(p.status.Limit),
		Places: &fleet.PlacesStatus{Status: p.status, InUse: p.use.InUse, Waiting: p.use.Waiting}, Err: p.err,
	}
	if s.Outage = p.since > 0; s.Outage {
		s.Since = p.since
	}
	return s
}

// usage is what the instance announces: the places that it wants, and those in use.
func (p *Places) usage() fleet.Use {
	return fleet.Use{Key: p.key, Demand: float64(p.status.Wanted), Passed: float64(p.use.InUse)}
}
