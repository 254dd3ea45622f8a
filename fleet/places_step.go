package fleet

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/places"
)

// placesClaim is a claim under way.
type placesClaim struct {
	places   *Places
	sequence int64
}

// placesID is the name of this instance in claims: nobody had it before, or has it too.
func (m *Member) placesID() string {
	if m.config.Manual {
		return m.config.Instance
	}
	return m.session
}

// placesTick is how soon places are looked at again because of calls.
const placesTick = 5 * time.Millisecond

// takeWokenPlaces has the places looked at that calls have woken.
func (m *Member) takeWokenPlaces(now clock.Instant) {
	for p := m.wokenPlaces.Swap(nil); p != nil; {
		next := p.nextWoken
		p.nextWoken, p.isTaken = nil, true
		p.due = min(p.due, max(now, p.looked.Add(placesTick)))
		p = next
	}
}

// lookAtPlaces looks at the places that are due, and claims what is to be claimed.
func (m *Member) lookAtPlaces(now clock.Instant) {
	m.takeWokenPlaces(now)
	for _, p := range slices.Backward(m.places) { // from the end: those that go make way
		if p.due > now {
			continue
		}
		if p.isTaken { // else a call may be about to put it into the list
			p.isTaken = false
			p.isWoken.Store(false)
		}
		if !m.maySend(m.partitionOf(p.key)) {
			p.due = now.Add(tick)
			continue
		}
		if claim, isDue := p.look(now); isDue {
			m.claim(now, p, &claim)
		}
		if p.isGone && p.use.InUse == 0 {
			m.removePlaces(p)
		}
	}
}

func (m *Member) claim(now clock.Instant, p *Places, claim *places.Claim) {
	request := Request{Operation: ClaimPlaces, Terms: Terms{Key: p.key}, Places: claim}
	m.request(now, request, &placesClaim{p, claim.Sequence}, false)
}

func (m *Member) placesDue() clock.Instant {
	due := never
	if !m.running {
		return due
	}
	for _, p := range m.places {
		due = min(due, p.due)
	}
	return due
}

func (m *Member) removePlaces(p *Places) {
	if p.place < 0 {
		return
	}
	if p.err != nil {
		m.noteAccepted()
	}
	removeFrom(&m.places, p)
	m.restIfUnused()
}

// PlacesGranted says that the backend has granted places of a limit to this instance, of which it
// learns when it claims the next time: at once.
func (m *Member) PlacesGranted(key string) {
	now := m.clock.Now()
	m.mu.Lock()
	defer m.unlock(now)
	for _, p := range m.places {
		if p.key == key {
			p.locked(now, func(places.Use) { p.holder.News() })
			p.due = min(p.due, now)
		}
	}
}

// answered implements requester.
func (c *placesClaim) answered(now clock.Instant, reply *Reply) {
	p := c.places
	if p.place < 0 {
		return
	}
	if reply.Err != nil {
		c.unanswered(now, reply.Err)
		p.refusedBy(now, reply.Err)
		return
	}
	p.locked(now, func(use places.Use) {
		if !p.holder.Answered(now, c.sequence, reply.Places, use.InUse) {
			return
		}
		p.lost, p.retryAt, p.since = 0, 0, 0
		if p.err != nil {
			p.err = nil
			p.member.noteAccepted()
		}
		p.due = p.holder.Due()
	})
}

// unanswered implements requester.
func (c *placesClaim) unanswered(now clock.Instant, err error) {
	p := c.places
	if p.place < 0 {
		return
	}
	p.locked(now, func(places.Use) {
		p.holder.Unanswered(c.sequence)
		p.due = max(now, p.holder.Due())
	})
	if p.since > 0 && !p.member.connection.out { // the outage is over, but nothing else has these places claimed
		p.retryAt = now.Add(p.member.jitter(maxProbeWait))
		p.due = min(p.due, p.retryAt)
	}
	if p.lost++; p.lost >= maxLost && !p.member.connection.isInDoubt() {
		p.refusedBy(now, err)
	}
}

// refusedBy has the limit go on without the backend, which does not count for it.
func (p *Places) refusedBy(now clock.Instant, err error) {
	m := p.member
	if p.err == nil {
		m.noteRefusal(p.key, err)
	}
	p.err = err
	p.retryAt = now.Add(m.jitter(maxProbeWait))
	p.begin(now)
	p.due = p.retryAt
}

// begin has the limit go on as onOutage says.
func (p *Places) begin(now clock.Instant) {
	if p.since == 0 {
		p.since = max(now, 1)
	}
	p.locked(now, func(places.Use) { p.holder.Begin(p.member.placesOutage(p.onOutage)) })
}

// placesOutage returns what holders do in an outage, and the number of instances that share a limit.
func (m *Member) placesOutage(o OnOutage) (places.Outage, int) {
	switch o {
	case OutageOpen:
		return places.OutageOpen, m.count
	case OutageShare:
		return places.OutageShare, m.count
	case OutageClosed:
		return places.OutageLapse, m.count
	}
	return places.OutageLast, m.count
}

// beginPlacesOutages has places go on as their onOutage says. An instance that was paused finds that
// its requests have no answer in time, and that its leases have ended: that is no outage before
// another request has failed, which is what sure says.
func (m *Member) beginPlacesOutages(now clock.Instant, sure bool) {
	for _, p := range m.places {
		isValid := false
		p.locked(now, func(places.Use) { isValid = p.holder.IsValid(now) })
		if p.since == 0 && (isValid || sure) {
			p.begin(now)
		}
	}
}

// retryPlaces has all places claimed at once: the backend answers again. Those for which it did not count are
// claimed at a time of their own, unless their last claim was lost with the backend.
func (m *Member) retryPlaces(now clock.Instant) {
	for _, p := range m.places {
		if p.err == nil || p.retryAt == 0 {
			p.locked(now, func(places.Use) { p.holder.Retry() })
			p.due = now
		}
	}
}

// leavePlaces adds the last claims to a batch: places that are in use count for a while longer.
func (m *Member) leavePlaces(now clock.Instant, last *Batch) {
	for _, p := range slices.Backward(m.places) {
		var claim places.Claim
		p.locked(now, func(use places.Use) { claim = p.holder.Last(use) })
		claim.Instance = m.placesID()
		if p.since == 0 && m.canCount() {
			last.Requests = append(last.Requests, Request{Operation: ClaimPlaces, Terms: Terms{Key: p.key}, Places: &claim})
			last.Replies = append(last.Replies, Reply{})
		}
		p.begin(now)
		p.due = never
		if p.isGone {
			m.removePlaces(p)
		}
	}
}

// startPlaces has all places claimed when the member runs again.
func (m *Member) startPlaces(now clock.Instant) {
	for _, p := range m.places {
		p.due = now // of all: those that are retried later, too
	}
	m.retryPlaces(now)
	m.retryValues(now)
}

// Notifier is a [Store] that tells instances at once that places were granted to them. Without it
// they learn of it when they claim again.
type Notifier interface {
	Store

	// Listen has f called with the key of each limit of which places are granted to an instance,
	// by its name in claims, until stop is called. It returns at once. f does not block for long;
	// calls may be missing, and come more often than places are granted.
	Listen(instance string, f func(key string)) (stop func())
}

// listen has the backend tell of places that are granted, if it can.
func (m *Member) listen() (stop func()) {
	if notifier, ok := m.config.Backend.(Notifier); ok {
		return notifier.Listen(m.placesID(), m.PlacesGranted)
	}
	return func() {}
}

// hasPlaces says whether there is a limit on calls under way.
func (m *Member) hasPlaces() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.places) > 0
}
