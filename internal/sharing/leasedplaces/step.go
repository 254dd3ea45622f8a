package leasedplaces

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/places"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/unordered"
)

// pendingClaim is a claim under way.
type pendingClaim struct {
	places   *Places
	sequence int64
}

// tick is how soon places are looked at again because of calls.
const tick = 5 * time.Millisecond

// takeWoken has the places looked at that calls have woken.
func (set *Set) takeWoken(now clock.Instant) {
	for p := set.woken.Swap(nil); p != nil; {
		next := p.nextWoken
		p.nextWoken, p.isTaken = nil, true
		p.due = min(p.due, max(now, p.looked.Add(tick)))
		p = next
	}
}

// Step looks at the places that are due, and claims what is to be claimed.
func (set *Set) Step(now clock.Instant) {
	set.takeWoken(now)
	for _, p := range slices.Backward(set.all) { // from the end: those that go make way
		if p.due > now {
			continue
		}
		if p.isTaken { // else a call may be about to put it into the list
			p.isTaken = false
			p.isWoken.Store(false)
		}
		if !set.MaySend(set.PartitionOf(p.key)) {
			p.due = now.Add(exchange.Tick)
			continue
		}
		if claim, isDue := p.look(now); isDue {
			set.claim(now, p, &claim)
		}
		if p.isGone && p.use.InUse == 0 {
			set.removePlaces(p)
		}
	}
}

func (set *Set) claim(now clock.Instant, p *Places, claim *places.Claim) {
	request := fleet.Request{Operation: fleet.ClaimPlaces, Terms: fleet.Terms{Key: p.key}, Places: claim}
	set.Request(now, request, &pendingClaim{p, claim.Sequence}, false)
}

// Next returns when the first places are to be looked at.
func (set *Set) Next() clock.Instant {
	due := exchange.Never
	if !set.Running() {
		return due
	}
	for _, p := range set.all {
		due = min(due, p.due)
	}
	return due
}

func (set *Set) removePlaces(p *Places) {
	if p.place < 0 {
		return
	}
	if p.err != nil {
		set.NoteAccepted()
	}
	unordered.Remove(&set.all, p.place).place = p.place
	p.place = -1
	set.Left()
}

// Granted says that the backend has granted places of a limit to this instance, of which it
// learns when it claims the next time: at once.
func (set *Set) Granted(key string) {
	now := set.Now()
	set.Mu.Lock()
	defer set.Unlock(now)
	for _, p := range set.all {
		if p.key == key {
			p.locked(now, func(places.Use) { p.holder.News() })
			p.due = min(p.due, now)
		}
	}
}

// Answered implements Requester.
func (c *pendingClaim) Answered(now clock.Instant, reply *fleet.Reply) {
	p := c.places
	if p.place < 0 {
		return
	}
	if reply.Err != nil {
		c.Unanswered(now, reply.Err)
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
			p.set.NoteAccepted()
		}
		p.due = p.holder.Due()
	})
}

// Unanswered implements Requester.
func (c *pendingClaim) Unanswered(now clock.Instant, err error) {
	p := c.places
	if p.place < 0 {
		return
	}
	p.locked(now, func(places.Use) {
		p.holder.Unanswered(c.sequence)
		p.due = max(now, p.holder.Due())
	})
	if p.since > 0 && !p.set.IsOut() { // the outage is over, but nothing else has these places claimed
		p.retryAt = now.Add(p.set.Jitter(exchange.MaxProbeWait))
		p.due = min(p.due, p.retryAt)
	}
	if p.lost++; p.lost >= exchange.MaxLost && !p.set.IsInDoubt() {
		p.refusedBy(now, err)
	}
}

// refusedBy has the limit go on without the backend, which does not count for it.
func (p *Places) refusedBy(now clock.Instant, err error) {
	set := p.set
	if p.err == nil {
		set.NoteRefusal(p.key, err)
	}
	p.err = err
	p.retryAt = now.Add(set.Jitter(exchange.MaxProbeWait))
	p.begin(now)
	p.due = p.retryAt
}

// begin has the limit go on as onOutage says.
func (p *Places) begin(now clock.Instant) {
	if p.since == 0 {
		p.since = max(now, 1)
	}
	p.locked(now, func(places.Use) { p.holder.Begin(p.set.placesOutage(p.onOutage)) })
}

// placesOutage returns what holders do in an outage, and the number of instances that share a limit.
func (set *Set) placesOutage(o fleet.OnOutage) (places.Outage, int) {
	switch o {
	case fleet.OutageOpen:
		return places.OutageOpen, set.Instances()
	case fleet.OutageShare:
		return places.OutageShare, set.Instances()
	case fleet.OutageClosed:
		return places.OutageLapse, set.Instances()
	}
	return places.OutageLast, set.Instances()
}

// BeginOutages has places go on as their onOutage says. An instance that was paused finds that
// its requests have no answer in time, and that its leases have ended: that is no outage before
// another request has failed, which is what sure says.
func (set *Set) BeginOutages(now clock.Instant, sure bool) {
	for _, p := range set.all {
		isValid := false
		p.locked(now, func(places.Use) { isValid = p.holder.IsValid(now) })
		if p.since == 0 && (isValid || sure) {
			p.begin(now)
		}
	}
}

// BackIsUp has all places claimed at once: the backend answers again. Those for which it did not count are
// claimed at a time of their own, unless their last claim was lost with the backend.
func (set *Set) BackIsUp(now clock.Instant) {
	for _, p := range set.all {
		if p.err == nil || p.retryAt == 0 {
			p.locked(now, func(places.Use) { p.holder.Retry() })
			p.due = now
		}
	}
}

// Leave adds the last claims to a batch: places that are in use count for a while longer.
func (set *Set) Leave(now clock.Instant, last *exchange.Batch) {
	for _, p := range slices.Backward(set.all) {
		var claim places.Claim
		p.locked(now, func(use places.Use) { claim = p.holder.Last(use) })
		claim.Instance = set.ClaimID()
		if p.since == 0 && set.CanCount() {
			last.Add(fleet.Request{Operation: fleet.ClaimPlaces, Terms: fleet.Terms{Key: p.key}, Places: &claim})
		}
		p.begin(now)
		p.due = exchange.Never
		if p.isGone {
			set.removePlaces(p)
		}
	}
}

// Restart has all places claimed when the member runs again.
func (set *Set) Restart(now clock.Instant) {
	for _, p := range set.all {
		p.due = now // of all: those that are retried later, too
	}
	set.BackIsUp(now)
}

// UnansweredBefore implements Requester.
func (c *pendingClaim) UnansweredBefore() int { return c.places.lost }

// Any says whether there is a limit on calls under way.
func (set *Set) Any() bool {
	set.Mu.Lock()
	defer set.Mu.Unlock()
	return len(set.all) > 0
}

// Woken returns when to look at places that calls have woken since the last step.
func (set *Set) Woken(now clock.Instant) clock.Instant {
	if set.woken.Load() == nil {
		return exchange.Never
	}
	return now
}

// Probe calls ask with limits that the store answers.
func (set *Set) Probe(ask func(fleet.Operation, fleet.Terms)) {
	for _, p := range set.all[:min(len(set.all), exchange.MaxProbed)] {
		ask(fleet.LeaseBucket, fleet.Terms{Key: p.key, Limit: 1, Window: time.Second, Burst: 1})
	}
}

// Uses returns what is used of the limits.
func (set *Set) Uses() (uses []fleet.Use) {
	for _, p := range set.all {
		uses = append(uses, p.usage())
	}
	return uses
}

// Status tells how the limits are, as they were looked at last.
func (set *Set) Status() (all []fleet.LimitStatus) {
	for _, p := range set.all {
		all = append(all, p.statusNow())
	}
	return all
}
