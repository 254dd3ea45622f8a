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
// tokens: as many tokens as were missing in its bucket are missing afterwards. So a burst
// that is raised is there at once, and one that is lowered and raised again yields nothing.
// Of a throttle the instant of the last pass stays. The algorithm must be the same.
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

// clockEnd is the last instant there is.
const clockEnd = clock.Instant(1<<63 - 1)

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
		previous, closed := previous.close(b, rates, now)
		if !closed {
			return false
		}
		b.previous.Store(previous)
	}
	b.convertAll(now) // words of the version before the present one
	b.lockAll()
	defer b.unlockAll()
	for i := range b.cells {
		if ahead := b.cells[i].Load() - int64(now); ahead > 0 {
			b.cells[i].Store(int64(now) + rates.estimateFrom(state.rates, ahead))
		}
	}
	b.state.Store(&bucketState{
		accepts: rates, rates: rates, before: state.rates,
		serial: state.serial + 1, parity: state.parity ^ parityBit,
	})
	return true
}

// close makes all further calls stale, because another table takes over with newer rates. If
// one has done so already, that one is closed. It returns the table that was closed.
func (b *Buckets) close(successor *Buckets, rates *Rates, now clock.Instant) (*Buckets, bool) {
	b.change.Lock()
	defer b.change.Unlock()
	if b.successor != nil {
		return b.successor.close(successor, rates, now)
	}
	state := b.state.Load()
	if state.accepts == nil || rates.version <= state.accepts.version {
		return nil, false
	}
	b.convertAll(now)
	b.lockAll()
	defer b.unlockAll()
	closed := *state
	closed.accepts, closed.closed = nil, true
	b.state.Store(&closed)
	b.until.Store(int64(clockEnd))
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

// handOver returns how far ahead a value is in a table that another one has taken over,
// converted to a rate of that one. From then on the value is judged there: its word has the
// other parity, so that a call that was under way here fails to change it.
func (b *Buckets) handOver(hash uint64, r *Rate, now clock.Instant) int64 {
	k := b.key(hash, tagMask)
	s := &b.stripes[k.tag&(b.geometry.stripes-1)]
	s.Lock()
	defer s.Unlock()
	state := b.state.Load()
	for {
		at := b.refreshBoth(k, now)
		slot, word, ok := b.find(k, state.parity>>stateBits|k.tag)
		if ok && !b.word(slot).CompareAndSwap(word, word^parityBit) {
			continue
		}
		if !ok {
			slot, word, ok = b.find(k, (state.parity^parityBit)>>stateBits|k.tag)
		}
		if ok {
			of := state.rates.classOf(word)
			ahead := of.ahead(word, of.units(at))
			return r.from(of, ahead+int64(of.toUnits.timesUp(int64(at-now))))
		}
		return b.estimate(hash, b.geometry.cells(k), state.rates, r, now)
	}
}

// expire notes when all values of a table that another one has taken over are as new.
func (b *Buckets) expire(now clock.Instant) {
	state := b.state.Load()
	if !state.closed || b.until.Load() != int64(clockEnd) {
		return
	}
	latest := int64(now)
	for i := range b.cells {
		latest = max(latest, b.cells[i].Load())
	}
	b.until.Store(latest)
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
	stats := Stats{Capacity: int(b.slots())}
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
	for i := range b.stripes {
		s := &b.stripes[i]
		s.Lock()
		stats.Forgotten += s.forgotten
		stats.WithoutSlot += s.withoutSlot
		s.Unlock()
	}
	return stats
}
