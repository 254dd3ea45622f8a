package table

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// ages tells the calls under way apart by when they were acquired, so that places which are held for
// too long can be given back. Each slot, and each cell of the sketch, has a ring: the calls under way
// by the epoch in which they were acquired. There are eight epochs in a ring, of a seventh of the
// longest age each: what is older than that is given back when it is met, at the latest when the
// epoch has its place in the ring again.
//
// Each call in a ring is counted in its word, or cell, too. It is added there before, and taken off
// after: so these never have fewer calls than the ring, and a slot without calls has an empty ring.
// Who changes the ring by compare-and-swap takes off what he has taken out: each call goes once.
type ages struct {
	slots   []ring
	cells   []ring
	sources []ring // of their calls in the sketch
	terms   atomic.Pointer[ageTerms]

	latest atomic.Int64 // epoch that a call was asked about: no call is counted in an earlier one

	// Places that were given back because of their age, and those of them that were not told yet, in
	// quarters: a call without a slot has one in each of four cells.
	given, untold atomic.Uint64
}

// ageTerms say how long a call may hold its place from an instant on. Epochs go on counting when
// they change.
type ageTerms struct {
	maxAge time.Duration
	since  clock.Instant
	base   uint64 // the epoch at since
}

const (
	ringEpochs = 8

	epochCountBits = 24
	epochCountMask = 1<<epochCountBits - 1

	// agedPlace is set in places of calls that are in a ring. The other bits are those of the epoch, as
	// far as there is space, before those that say where the call is counted.
	agedPlace     = 1 << 47
	agedPlaceMask = agedPlace - 1
	agedCellBits  = 20
)

// ring has calls by their epochs: epoch, 40 bits | calls, 24 bits.
type ring [ringEpochs]atomic.Uint64

func (t *ageTerms) width() time.Duration { return max(1, (t.maxAge+ringEpochs-2)/(ringEpochs-1)) }

func (t *ageTerms) epochAt(now clock.Instant) uint64 {
	return t.base + uint64(max(0, now.Sub(t.since))/t.width())
}

// startOf returns when an epoch began; of one before the terms changed, when that was.
func (t *ageTerms) startOf(epoch uint64) clock.Instant {
	if epoch < t.base {
		return t.since
	}
	return t.since.Add(time.Duration(epoch-t.base) * t.width())
}

// enter adds a call. It returns how many calls it has found that are too old, and false if the call
// is that itself, as it has been on its way here for so long.
func (r *ring) enter(epoch uint64) (tooOld uint64, ok bool) {
	for c := &r[epoch%ringEpochs]; ; {
		present := c.Load()
		switch of := present >> epochCountBits; {
		case of > epoch:
			return 0, false
		case of == epoch:
			if c.CompareAndSwap(present, present+1) {
				return 0, true
			}
		case c.CompareAndSwap(present, epoch<<epochCountBits|1):
			return present & epochCountMask, true
		}
	}
}

// leave takes a call out, of an epoch of which some bits are known. It returns false if its place was
// given back before.
func (r *ring) leave(epoch, mask uint64) bool {
	for c := &r[epoch%ringEpochs]; ; {
		present := c.Load()
		if present>>epochCountBits&mask != epoch || present&epochCountMask == 0 {
			return false
		}
		if c.CompareAndSwap(present, present-1) {
			return true
		}
	}
}

// expire takes out the calls that are too old, and returns how many these are.
func (r *ring) expire(epoch uint64) (tooOld uint64) {
	for i := range r {
		c := &r[i]
		for present := c.Load(); present&epochCountMask > 0 && present>>epochCountBits+ringEpochs <= epoch; present = c.Load() {
			latest := epoch - (epoch-uint64(i))%ringEpochs // that has its place here
			if c.CompareAndSwap(present, latest<<epochCountBits) {
				tooOld += present & epochCountMask
			}
		}
	}
	return tooOld
}

// oldest returns the first epoch of which calls are under way; ok is false if there are none.
func (r *ring) oldest() (epoch uint64, ok bool) {
	for i := range r {
		if present := r[i].Load(); present&epochCountMask > 0 {
			if of := present >> epochCountBits; !ok || of < epoch {
				epoch, ok = of, true
			}
		}
	}
	return epoch, ok
}

// agesFor returns what tells the ages of calls apart, for a longest age; it is made when it is needed
// for the first time.
func (c *Concurrency) agesFor(version uint64, maxAge time.Duration, now clock.Instant) *ages {
	if a := c.ages.Load(); a != nil && a.terms.Load().maxAge == maxAge {
		return a
	}
	c.change.Lock()
	defer c.change.Unlock()
	a := c.ages.Load()
	switch {
	case a == nil:
		a = &ages{
			slots: make([]ring, c.slots()), cells: make([]ring, len(c.cells)), sources: make([]ring, len(c.sources.cells)),
		}
		a.terms.Store(&ageTerms{maxAge, now, ringEpochs})
		c.ages.Store(a)
	case c.version.Load() == version && a.terms.Load().maxAge != maxAge:
		a.terms.Store(&ageTerms{maxAge, now, a.terms.Load().epochAt(now)})
	}
	return a
}

// aging is what an attempt to acquire a place knows of the ages of calls; nothing if they do not
// count.
type aging struct {
	ages  *ages
	epoch uint64
	now   clock.Instant
}

// at returns what there is to know at an instant.
func (a *ages) at(now clock.Instant) aging {
	epoch := int64(a.terms.Load().epochAt(now))
	raise(&a.latest, epoch)
	return aging{a, uint64(a.latest.Load()), now}
}

// expired gives back the places of a slot that are held for too long, and says whether there were
// any.
func (c *Concurrency) expired(slot uint64, a aging) bool {
	if a.ages == nil {
		return false
	}
	tooOld := a.ages.slots[slot].expire(a.epoch)
	c.giveBack(slot, a.ages, tooOld)
	return tooOld > 0
}

func (c *Concurrency) giveBack(slot uint64, a *ages, calls uint64) {
	if calls > 0 {
		c.end(slot, calls)
		a.note(calls * sketchRows)
	}
}

// taken returns the place of a call that is counted in a slot.
func (c *Concurrency) taken(slot uint64, a aging) Place {
	if a.ages == nil {
		return Place((slot + 1) << 1)
	}
	tooOld, ok := a.ages.slots[slot].enter(a.epoch)
	c.giveBack(slot, a.ages, tooOld)
	if !ok {
		c.giveBack(slot, a.ages, 1)
		return 0
	}
	return agedPlace | Place((a.epoch<<c.slotBits|(slot+1))<<1)&agedPlaceMask
}

// expiredCells gives back the places in the cells of a value that are held for too long, and
// expiredSource those that count for a source.
func (c *Concurrency) expiredCells(cells uint64, a aging) {
	if a.ages != nil {
		a.ages.note(expireIn(c.cells, a.ages.cells, cells, a.epoch))
	}
}

func (c *Concurrency) expiredSource(from Source, a aging) {
	if a.ages != nil {
		expireIn(c.sources.cells, a.ages.sources, uint64(from), a.epoch)
	}
}

// expireIn takes the calls that are too old off the cells of a key, enterIn adds one, and leaveIn takes
// that off. What is returned is how many too old ones were found, in all cells together.
func expireIn(cells []atomic.Int64, rings []ring, key, epoch uint64) (tooOld uint64) {
	for i := range sketchRows {
		cell := cellOf(key, i, len(cells))
		tooOld += takeOff(cells, cell, rings[cell].expire(epoch))
	}
	return tooOld
}

func enterIn(cells []atomic.Int64, rings []ring, key, epoch uint64) (tooOld uint64) {
	addTo(cells, key, 1)
	for i := range sketchRows {
		cell := cellOf(key, i, len(cells))
		found, ok := rings[cell].enter(epoch)
		if !ok {
			found++
		}
		tooOld += takeOff(cells, cell, found)
	}
	return tooOld
}

func leaveIn(cells []atomic.Int64, rings []ring, key, epoch, mask uint64) {
	for i := range sketchRows {
		if cell := cellOf(key, i, len(cells)); rings[cell].leave(epoch, mask) {
			takeOff(cells, cell, 1)
		}
	}
}

func takeOff(cells []atomic.Int64, cell, calls uint64) uint64 {
	if calls > 0 {
		cells[cell].Add(-int64(calls))
	}
	return calls
}

// note counts quarters of places that were given back.
func (a *ages) note(quarters uint64) {
	a.given.Add(quarters)
	a.untold.Add(quarters)
}

// takenWithoutSlot counts a call in the cells of its value and of its source, and returns its place.
func (c *Concurrency) takenWithoutSlot(cells uint64, from Source, a aging) Place {
	at := uint64(from)<<agedCellBits | cells
	if a.ages == nil {
		addTo(c.cells, cells, 1)
		c.sources.addCalls(from, 1)
		return sketchPlace(at)
	}
	a.ages.note(enterIn(c.cells, a.ages.cells, cells, a.epoch))
	if from != NoSource {
		enterIn(c.sources.cells, a.ages.sources, uint64(from), a.epoch)
	}
	return agedPlace | sketchPlace(a.epoch<<(shortBits+agedCellBits)|at)&agedPlaceMask
}

// releaseWithoutSlot ends a call that the sketch counts.
func (c *Concurrency) releaseWithoutSlot(p Place) {
	at := uint64(p&agedPlaceMask) >> 1
	cells, from := at&(1<<agedCellBits-1), Source(at>>agedCellBits&shortMask)
	if p&agedPlace == 0 {
		addTo(c.cells, cells, -1)
		c.sources.addCalls(from, -1)
		return
	}
	a, epoch := c.ages.Load(), at>>(shortBits+agedCellBits)
	const mask = agedPlaceMask >> (1 + shortBits + agedCellBits)
	leaveIn(c.cells, a.cells, cells, epoch, mask)
	if from != NoSource {
		leaveIn(c.sources.cells, a.sources, uint64(from), epoch, mask)
	}
}

// releaseAged ends a call of a slot that is in a ring.
func (c *Concurrency) releaseAged(p Place) {
	a, at := c.ages.Load(), uint64(p&agedPlaceMask)>>1
	slot, epoch := at&(1<<c.slotBits-1)-1, at>>c.slotBits
	if a.slots[slot].leave(epoch, agedPlaceMask>>(1+c.slotBits)) {
		c.end(slot, 1)
	}
}

// at returns what a table knows of the ages of its calls at an instant.
func (c *Concurrency) at(now clock.Instant) aging {
	a := c.ages.Load()
	if a == nil || now == 0 {
		return aging{}
	}
	return a.at(now)
}

// Untold returns how many places were given back because they were held for too long since it was
// called last.
func (c *Concurrency) Untold() uint64 {
	a := c.ages.Load()
	if a == nil {
		return 0
	}
	for {
		untold := a.untold.Load()
		if places := untold / sketchRows; places == 0 || a.untold.CompareAndSwap(untold, untold%sketchRows) {
			return places
		}
	}
}

// Expired returns how many places were given back because they were held for too long.
func (c *Concurrency) Expired() uint64 {
	a := c.ages.Load()
	if a == nil {
		return 0
	}
	return a.given.Load() / sketchRows
}

// Oldest gives back the places that are held for too long, and returns how long the oldest of the
// others is held, at most. It reads all of the table.
func (c *Concurrency) Oldest(now clock.Instant) time.Duration {
	a := c.at(now)
	if a.ages == nil {
		return 0
	}
	first, found := uint64(0), false
	look := func(r *ring) {
		if epoch, ok := r.oldest(); ok && (!found || epoch < first) {
			first, found = epoch, true
		}
	}
	for slot := range a.ages.slots {
		c.expired(uint64(slot), a)
		look(&a.ages.slots[slot])
	}
	for cell := range a.ages.cells {
		look(&a.ages.cells[cell])
	}
	if !found {
		return 0
	}
	return max(0, now.Sub(a.ages.terms.Load().startOf(first)))
}
