package table

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Concurrency is a table of the calls under way per value, one 64-bit word each:
//
//	closed, 1 bit | tag, 24 bits | source, 14 bits | calls, 25 bits
//
// The source is who has had the slot as one of the last ones, while it counts for him: until no
// call of its value is under way. That of other slots is 0.
//
// What guards what:
//
//   - A word is changed by compare-and-swap only. A call on a value that has a slot does
//     nothing else.
//   - The mutex of a value's stripe guards that the value has no second slot: only under it
//     a value is given one, and counted in the sketch. A slot is given to another value
//     only when no call is under way.
//   - While a table takes over from another one, the calls under way in both count. So each
//     call locks the stripe of its value then, first here and then in the table before,
//     and closes the value's word there, so that a call that was under way there fails to
//     change it.
type Concurrency struct {
	geometry
	groups  []bucketGroup
	cells   []atomic.Int64 // a sketch: each cell counts the calls of all values that have it
	sources *Holders       // what sources have of the last slots, and their calls in the sketch
	stripes []stripe
	ages    atomic.Pointer[ages] // nil unless places are given back that are held for too long
	version atomic.Uint64        // calls with an older one are stale
	closed  atomic.Bool          // another table has taken over; set under all stripes

	change    sync.Mutex // held by who takes over, or looks for what is left to be taken over
	previous  atomic.Pointer[Concurrency]
	successor *Concurrency
	drained   uint64 // groups and cells of a closed table in which no call is under way
	maxValues int
}

const (
	countBits     = 25
	countMask     = 1<<countBits - 1
	countTagShift = shortBits + countBits
	countTagMask  = 1<<(63-countTagShift) - 1
	closedBit     = 1 << 63
	notInUse      = math.MaxUint64 // the version of a table before its first call, and of a closed one
	drainAtATime  = 64
)

// NewConcurrency makes a table that holds at least maxValues values at a time, as long as
// they spread evenly. It takes about 14 bytes a value.
func NewConcurrency(maxValues int, version uint64) *Concurrency {
	c := newConcurrency(maxValues)
	c.version.Store(version)
	return c
}

func newConcurrency(maxValues int) *Concurrency {
	g := newGeometry(maxValues)
	g.cellBits = agedCellBits // so that a Place has space for an epoch, too
	return &Concurrency{
		geometry:  g,
		groups:    make([]bucketGroup, g.groups),
		cells:     make([]atomic.Int64, g.sketchSize()),
		sources:   newHolders(&g),
		stripes:   make([]stripe, g.stripes),
		maxValues: maxValues,
	}
}

// Adopt returns the table for another version of the rule: this one, or, for another
// maxValues, a new one that takes over from it. Nothing changes until the new version is
// activated or a call comes with it. Calls that were acquired here are released here, and
// count in both tables. While they are under way the new table cannot be taken over
// itself: then the size stays.
func (c *Concurrency) Adopt(maxValues int, now clock.Instant) *Concurrency {
	c.change.Lock()
	defer c.change.Unlock()
	if c.successor != nil {
		return c.successor.Adopt(maxValues, now)
	}
	previous := c.previous.Load()
	if previous != nil && c.version.Load() != notInUse && previous.drain(math.MaxInt, now) {
		c.previous.Store(nil)
		previous = nil
	}
	if maxValues == c.maxValues || previous != nil {
		return c
	}
	next := newConcurrency(maxValues)
	next.version.Store(notInUse)
	next.previous.Store(c)
	return next
}

// Activate makes calls with older versions stale.
func (c *Concurrency) Activate(version uint64) { c.enter(version) }

// enter goes over to a newer version. It returns false if the version is older than the
// present one, or if another table has taken over.
func (c *Concurrency) enter(version uint64) bool {
	c.change.Lock()
	defer c.change.Unlock()
	if c.closed.Load() {
		return false
	}
	present := c.version.Load()
	if present != notInUse && present >= version {
		return present == version
	}
	if previous := c.previous.Load(); previous != nil && present == notInUse {
		previous, closed := previous.close(c, version)
		if !closed {
			return false
		}
		c.previous.Store(previous)
	}
	c.version.Store(version)
	return true
}

// close makes all further calls stale. If another table has taken over already, that one
// is closed. It returns the table that was closed.
func (c *Concurrency) close(successor *Concurrency, version uint64) (*Concurrency, bool) {
	c.change.Lock()
	defer c.change.Unlock()
	if c.successor != nil {
		return c.successor.close(successor, version)
	}
	if present := c.version.Load(); present == notInUse || present >= version {
		return nil, false
	}
	for i := range c.stripes {
		c.stripes[i].Lock()
	}
	c.closed.Store(true)
	c.version.Store(notInUse)
	for i := range c.stripes {
		c.stripes[i].Unlock()
	}
	c.successor = successor
	return c, true
}

// Acquire counts a call of a value if fewer than limit are under way; no more than 2²⁵−1
// can be. The call is to be released with the place, once. The source is where it comes from,
// which counts if its value finds no slot.
func (c *Concurrency) Acquire(hash, version uint64, limit int64, from Source) (Place, Outcome) {
	return c.acquire(hash, version, limit, from, aging{})
}

// AcquireAged is Acquire for a version of the rule by which a place that is held for longer than
// maxAge counts as given back: at the latest after a seventh more. So it is for calls that were
// acquired by such a version; to release them later does nothing.
func (c *Concurrency) AcquireAged(
	hash, version uint64, limit int64, from Source, maxAge time.Duration, now clock.Instant,
) (Place, Outcome) {
	if c.version.Load() != version && !c.enter(version) {
		return 0, Stale
	}
	a := c.agesFor(version, maxAge, now)
	return c.acquire(hash, version, limit, from, a.at(now))
}

func (c *Concurrency) acquire(hash, version uint64, limit int64, from Source, a aging) (Place, Outcome) {
	k := c.key(hash, countTagMask)
	limit = min(limit, countMask)
	if c.version.Load() != version || c.previous.Load() != nil {
		return c.acquireSlowly(hash, k, version, limit, from, a)
	}
	for {
		slot, word, ok := c.find(k, k.tag)
		switch {
		case !ok:
			return c.acquireSlowly(hash, k, version, limit, from, a)
		case int64(word&countMask) >= limit:
			if !c.expired(slot, a) {
				return 0, Refused
			}
		case c.word(slot).CompareAndSwap(word, word+1):
			return c.taken(slot, a), Taken
		}
	}
}

func (c *Concurrency) word(slot uint64) *atomic.Uint64 {
	return &c.groups[slot/groupSize][slot%groupSize]
}

// find returns the slot of a value. Want is its tag, and the bit of closed words if the
// word is closed.
func (c *Concurrency) find(k key, want uint64) (slot, word uint64, ok bool) {
	for _, group := range [...]uint64{k.first, k.second} {
		words := &c.groups[group]
		for i := range words {
			if w := words[i].Load(); w>>countTagShift == want {
				return group*groupSize + uint64(i), w, true
			}
		}
	}
	return 0, 0, false
}

func (c *Concurrency) acquireSlowly(
	hash uint64, k key, version uint64, limit int64, from Source, a aging,
) (Place, Outcome) {
	s := &c.stripes[k.tag&(c.geometry.stripes-1)]
	for {
		s.Lock()
		if c.version.Load() == version && !c.closed.Load() {
			break
		}
		s.Unlock()
		if !c.enter(version) {
			return 0, Stale
		}
	}
	defer s.Unlock()
	limit -= c.elsewhere(hash, a.now)
	for {
		slot, word, ok := c.find(k, k.tag)
		switch {
		case !ok:
			return c.acquireWithoutSlot(s, k, limit, from, a)
		case int64(word&countMask) >= limit:
			if !c.expired(slot, a) {
				return 0, Refused
			}
		case c.word(slot).CompareAndSwap(word, word+1):
			return c.taken(slot, a), Taken
		}
	}
}

// acquireWithoutSlot gives a value a slot. If there is none, or if calls of the value may be
// under way that the sketch has counted, the sketch judges.
func (c *Concurrency) acquireWithoutSlot(s *stripe, k key, limit int64, from Source, a aging) (Place, Outcome) {
	if limit <= 0 {
		return 0, Refused
	}
	cells, from := c.geometry.cells(k), from.short()
	c.expiredCells(cells, a)
	present := leastOf(c.cells, cells)
	for present == 0 {
		slot, isLast, ok := choose(c.candidate(k.first, a), c.candidate(k.second, a))
		if !ok || isLast && !c.sources.MayLast(from) {
			break
		}
		if c.insert(s, slot, k.tag, isLast, from) {
			return c.taken(slot, a), Taken
		}
	}
	if from == UnknownSource {
		return 0, NoSlot
	}
	s.withoutSlot++
	if present >= limit || !c.maySketch(from, limit, a) {
		return sketchPlace(cells), Refused
	}
	return c.takenWithoutSlot(cells, from, a), Taken
}

// insert gives a slot to a value. It returns false if another call was quicker.
func (c *Concurrency) insert(s *stripe, slot, tag uint64, isLast bool, from Source) bool {
	word, added := c.word(slot).Load(), tag<<countTagShift|1
	if word&countMask != 0 {
		return false
	}
	if isLast {
		added |= uint64(from) << countBits
	}
	if !c.word(slot).CompareAndSwap(word, added) {
		return false
	}
	c.sources.AddLast(holder(word), -1) // its last call ended this moment
	c.sources.AddLast(holder(added), 1)
	if word != 0 {
		s.forgotten++
	}
	return true
}

// holder returns for whom a slot counts as one of the last.
func holder(word uint64) Source { return Source(word >> countBits & shortMask) }

// maySketch says whether a source may have one more call that only the sketch counts.
func (c *Concurrency) maySketch(from Source, limit int64, a aging) bool {
	if from == NoSource {
		return true
	}
	c.expiredSource(from, a)
	return c.sources.of(from) < limit*c.sourceShare()/c.sketchCost()
}

func (c *Concurrency) candidate(group uint64, a aging) candidate {
	found := candidate{idle: -1}
	for i := range c.groups[group] {
		c.expired(group*groupSize+uint64(i), a)
		word, idle := c.groups[group][i].Load(), int64(-1)
		if word&countMask == 0 {
			idle = 0
		}
		found.consider(group*groupSize+uint64(i), word == 0, idle)
	}
	return found
}

// Release ends a call. It does nothing for a place that is nowhere.
func (c *Concurrency) Release(p Place) {
	if p == 0 {
		return
	}
	switch {
	case p.IsShared():
		c.releaseWithoutSlot(p)
	case p&agedPlace != 0:
		c.releaseAged(p)
	default:
		c.end(c.slot(p), 1)
	}
}

// end takes calls off a slot. With the last of its value a slot that counts for a source does so no more.
func (c *Concurrency) end(slot, calls uint64) {
	word := c.word(slot).Add(-calls)
	if from := holder(word); from != NoSource && word&countMask == 0 && c.word(slot).CompareAndSwap(word, word&closedBit) {
		c.sources.AddLast(from, -1)
	}
}

// InFlight returns how many calls of a value are under way at an instant, at most.
func (c *Concurrency) InFlight(hash uint64, now clock.Instant) int64 {
	a := c.at(now)
	k := c.key(hash, countTagMask)
	s := &c.stripes[k.tag&(c.geometry.stripes-1)]
	s.Lock()
	defer s.Unlock()
	c.expiredCells(c.geometry.cells(k), a)
	here := leastOf(c.cells, c.geometry.cells(k))
	for _, want := range [...]uint64{k.tag, k.tag | closedBit>>countTagShift} {
		slot, word, ok := c.find(k, want)
		if ok && c.expired(slot, a) {
			_, word, ok = c.find(k, want)
		}
		if ok {
			here += int64(word & countMask)
		}
	}
	if previous := c.previous.Load(); previous != nil {
		here += previous.InFlight(hash, now)
	}
	return here
}

// elsewhere returns how many calls of a value are under way in the table that this one takes
// over from, where no more can come. The caller holds the stripe of the value.
func (c *Concurrency) elsewhere(hash uint64, now clock.Instant) int64 {
	previous := c.previous.Load()
	if previous == nil {
		return 0
	}
	if c.change.TryLock() { // or somebody else is looking
		if previous.drain(drainAtATime, now) {
			c.previous.Store(nil)
		}
		c.change.Unlock()
	}
	return previous.left(hash, now)
}

// left returns how many calls of a value are under way in a closed table, and closes its
// word, so that none can come any more.
func (c *Concurrency) left(hash uint64, now clock.Instant) int64 {
	a := c.at(now)
	k := c.key(hash, countTagMask)
	s := &c.stripes[k.tag&(c.geometry.stripes-1)]
	s.Lock()
	defer s.Unlock()
	c.expiredCells(c.geometry.cells(k), a)
	left := leastOf(c.cells, c.geometry.cells(k)) + c.elsewhere(hash, now)
	for {
		slot, word, ok := c.find(k, k.tag)
		if ok && c.expired(slot, a) {
			continue
		}
		if ok && !c.word(slot).CompareAndSwap(word, word|closedBit) {
			continue
		}
		if !ok {
			slot, word, ok = c.find(k, k.tag|closedBit>>countTagShift)
			if ok && c.expired(slot, a) {
				_, word, ok = c.find(k, k.tag|closedBit>>countTagShift)
			}
		}
		if ok {
			left += int64(word & countMask)
		}
		return left
	}
}

// drain goes on looking, in so many groups, whether calls are under way in a closed table. It
// returns true when there are none. The one who calls holds the change of the successor.
func (c *Concurrency) drain(groups int, now clock.Instant) bool {
	a := c.at(now)
	if previous := c.previous.Load(); previous != nil {
		return false
	}
	for ; groups > 0 && c.drained < uint64(len(c.groups)); groups-- {
		for i := range c.groups[c.drained] {
			c.expired(c.drained*groupSize+uint64(i), a)
			word := &c.groups[c.drained][i]
			present := word.Load()
			for !word.CompareAndSwap(present, present|closedBit) {
				present = word.Load()
			}
			if present&countMask != 0 {
				return false
			}
		}
		c.drained++
	}
	for ; groups > 0 && c.drained < uint64(len(c.groups)+len(c.cells)); groups-- {
		cell := c.drained - uint64(len(c.groups))
		if a.ages != nil {
			a.ages.note(takeOff(c.cells, cell, a.ages.cells[cell].expire(a.epoch)))
		}
		if c.cells[cell].Load() != 0 {
			return false
		}
		c.drained++
	}
	return c.drained == uint64(len(c.groups)+len(c.cells))
}

// Stats returns the counts of the table. It reads all of it.
func (c *Concurrency) Stats() Stats {
	stats := Stats{Capacity: int(c.slots()), Bytes: c.bytes(8, 8) + 8*len(c.sources.cells)}
	if c.ages.Load() != nil {
		const each = 8 * ringEpochs
		stats.Bytes += c.bytes(each, each) + each*len(c.sources.cells)
	}
	for group := range c.groups {
		for i := range c.groups[group] {
			if c.groups[group][i].Load()&countMask > 0 {
				stats.Occupied++
			}
		}
	}
	stats.count(c.stripes)
	return stats
}
