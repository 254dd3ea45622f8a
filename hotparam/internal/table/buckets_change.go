package table

import (
	"github.com/penstock-go/penstock/clock"
)

// Adopt returns the table for another version of the rule: this one, or, for another
// maxValues, a new one that takes over from it. Nothing changes until the new rates are
// activated or a call comes with one of them. Until the values that a table has taken over
// are as new, it cannot be taken over itself: then the size stays.
//
// What a value has used stays used when its limit, window, burst or class changes, in
// tokens: as many tokens as were missing in its bucket are missing afterwards, rounded up
// to whole units of time (see [Rates.Resolution]). So a burst that is raised is there at once, and one that is lowered and raised again yields nothing.
// Of a throttle the instant of the last pass stays. The algorithm must be the same. From
// the change to the next call of a value whose class changes, what it has used flows back
// at the new rate of the class that has the number of its old one, or of class 0 if there
// is none.
//
// Corrections ([Buckets.GiveBack] and the like) of calls that a table let pass before
// another one took over have no effect on values that have come to the new one.
func (b *Buckets) Adopt(maxValues int, now clock.Instant) *Buckets {
	b.change.Lock()
	defer b.change.Unlock()
	if b.successor != nil {
		return b.successor.Adopt(maxValues, now)
	}
	state, previous := b.state.Load(), b.previous.Load()
	if previous != nil && state.accepts != nil && int64(now) >= previous.until.Load() {
		b.previous.CompareAndSwap(previous, nil)
		previous = nil
	}
	if maxValues == b.maxValues || previous != nil {
		return b
	}
	next, rates := newBuckets(maxValues), state.rates
	next.state.Store(&bucketState{rates: rates, before: rates, serial: 1})
	next.previous.Store(b)
	return next
}

// Grow returns a larger table that has taken over from this one, with the same rates: calls with
// them are stale here from then on. It returns this one if it cannot be taken over yet, or has
// been, or is to be by that of another version. The calls of a few milliseconds wait.
func (b *Buckets) Grow(maxValues int, now clock.Instant) *Buckets {
	b.change.Lock()
	taken := b.successor != nil
	b.change.Unlock()
	if taken || maxValues <= b.maxValues {
		return b
	}
	next := b.Adopt(maxValues, now)
	if next == b || next.previous.Load() != b {
		return b
	}
	if !next.takeOver(b, now) {
		return b
	}
	return next
}

// takeOver goes over to the rates of the table that this one is to take over from.
func (b *Buckets) takeOver(previous *Buckets, now clock.Instant) bool {
	b.change.Lock()
	defer b.change.Unlock()
	rates := previous.state.Load().accepts
	if rates == nil || !previous.closeSame(b, rates) {
		return false
	}
	b.goOver(bucketState{accepts: rates, rates: rates}, now)
	b.stripes[0].continues(previous.stripes)
	previous.expire(now)
	return true
}

// closeSame notes that another table takes over with the same rates.
func (b *Buckets) closeSame(successor *Buckets, rates *Rates) bool {
	b.change.Lock()
	defer b.change.Unlock()
	if b.successor != nil || b.state.Load().accepts != rates {
		return false
	}
	b.successor = successor
	return true
}

// Activate goes over to newer rates. Calls with older ones are stale from then on. It takes
// a few milliseconds for a million values, in which calls go on. It does nothing if the
// rates are not newer.
func (b *Buckets) Activate(rates *Rates, now clock.Instant) {
	b.enter(rates, now)
	b.change.Lock()
	defer b.change.Unlock()
	b.convertAll(now)
	if previous := b.previous.Load(); previous != nil {
		previous.expire(now)
	}
}

// enter goes over to newer rates, but for the words. It returns false if the rates are
// older than the present ones, or if another table has taken over.
func (b *Buckets) enter(rates *Rates, now clock.Instant) bool {
	b.change.Lock()
	defer b.change.Unlock()
	state := b.state.Load()
	if state.accepts == rates {
		return true
	}
	if state.closed || state.accepts != nil && rates.version <= state.accepts.version {
		return false
	}
	if previous := b.previous.Load(); previous != nil && state.accepts == nil {
		previous, closed := previous.close(b, rates)
		if !closed {
			return false
		}
		b.previous.Store(previous)
	}
	b.goOver(bucketState{accepts: rates, rates: rates}, now)
	return true
}

// goOver begins to convert the table, and those that it takes over from, to a new state. The
// caller holds the change.
func (b *Buckets) goOver(to bucketState, now clock.Instant) {
	if previous := b.previous.Load(); previous != nil {
		previous.change.Lock()
		previous.goOver(bucketState{rates: to.rates, closed: true}, now)
		previous.change.Unlock()
	}
	b.convertAll(now) // words of the version before the present one
	b.lockAll()
	defer b.unlockAll()
	state := b.state.Load()
	convert := func(at int64) int64 {
		if ahead := at - int64(now); ahead > 0 {
			return int64(now) + to.rates.estimateFrom(state.rates, ahead)
		}
		return at
	}
	b.cells.convert(convert)
	b.sources.convert(convert)
	to.before, to.since = state.rates, now
	to.serial, to.parity = state.serial+1, state.parity^parityBit
	b.until.Store(int64(now.Add(to.rates.MaxDebt())))
	b.state.Store(&to)
}

// close notes that another table takes over with newer rates, which is then to go over to
// them with this one. If one has done so already, that one is closed. It returns the table
// that was closed.
func (b *Buckets) close(successor *Buckets, rates *Rates) (*Buckets, bool) {
	b.change.Lock()
	defer b.change.Unlock()
	if b.successor != nil {
		return b.successor.close(successor, rates)
	}
	state := b.state.Load()
	if state.accepts == nil || rates.version <= state.accepts.version {
		return nil, false
	}
	b.successor = successor
	return b, true
}

// convertAll brings all blocks to the present version.
func (b *Buckets) convertAll(now clock.Instant) {
	serial := b.state.Load().serial & (1<<serialBits - 1)
	for block := range b.headers {
		if b.headers[block].Load()&(1<<serialBits-1) != serial {
			b.refresh(uint64(block)*blockGroups, now)
		}
	}
}

func (b *Buckets) lockAll() {
	for i := range b.stripes {
		b.stripes[i].Lock()
	}
}

func (b *Buckets) unlockAll() {
	for i := range b.stripes {
		b.stripes[i].Unlock()
	}
}

// handOver returns how far ahead a value is in a table that another one has taken over, which
// has the same rates. Calls that were under way here fail to change the word of the value:
// it has been converted.
func (b *Buckets) handOver(hash uint64, r *Rate, now clock.Instant) int64 {
	k := b.key(hash, tagMask)
	s := &b.stripes[k.tag&(b.geometry.stripes-1)]
	s.Lock()
	defer s.Unlock()
	_, ahead, word, at := b.lookUp(b.state.Load(), k, r, now)
	if word == 0 {
		return b.estimate(hash, b.geometry.cells(k), b.state.Load().rates, r, now)
	}
	return ahead + int64(r.toUnits.times(uint64(at-now)))
}

// expire notes when all values of a table that another one has taken over are as new,
// which is mostly earlier than they could be.
func (b *Buckets) expire(now clock.Instant) {
	state := b.state.Load()
	b.until.Store(max(int64(now), b.cells.latest.Load()))
	for group := range b.groups {
		at := b.refresh(uint64(group), now)
		for i := range b.groups[group] {
			if word := b.groups[group][i].Load(); word != 0 {
				of := state.rates.classOf(word)
				raise(&b.until, int64(at)+of.toTime.timesUp(of.ahead(word, of.units(at))))
			}
		}
	}
}

// Stats returns the counts of the table. It reads all of it, which takes about a
// millisecond for a million values.
func (b *Buckets) Stats(now clock.Instant) Stats {
	stats := Stats{Capacity: int(b.slots()), Bytes: b.bytes(8, 8) + 8*len(b.sources.cells)}
	for group := range b.groups {
		at := b.refresh(uint64(group), now)
		for i := range b.groups[group] {
			if word := b.groups[group][i].Load(); word != 0 {
				of := b.state.Load().rates.classOf(word)
				if of.ahead(word, of.units(at)) > 0 {
					stats.Occupied++
				}
			}
		}
	}
	stats.count(b.stripes)
	return stats
}
