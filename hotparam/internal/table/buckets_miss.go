package table

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// takeSlowly is TakeOrWait for a value that has no slot, or whose block is not up to date, or for
// a call with other rates than the table's.
func (b *Buckets) takeSlowly(
	hash uint64, k key, r *Rate, now clock.Instant, tokens int32, from Source,
) (Place, time.Duration, Outcome) {
	s := b.lockStripe(k, r.rates, now)
	if s == nil {
		return 0, 0, Stale
	}
	defer s.Unlock()
	state := b.state.Load()
	for {
		slot, ahead, word, at := b.lookUp(state, k, r, now)
		late := at.Sub(now) // the table has seen a later instant
		if word == 0 {
			p, wait, outcome := b.takeWithoutSlot(s, hash, k, r, at, tokens, from)
			return p, late + wait, outcome
		}
		next, pass := r.after(ahead, tokens)
		if !pass {
			return 0, late + r.untilPass(next), Refused
		}
		changed := state.parity | k.tag<<stateBits | r.class | (r.units(at)+uint64(next))&r.timeMask
		if b.word(slot).CompareAndSwap(word, changed) {
			if ahead == 0 {
				b.setReturned(slot)
			}
			return b.place(slot, k.tag), late + r.wait(next), Taken
		}
	}
}

// takeWithoutSlot gives a value a slot, or judges it by the sketch if there is none.
func (b *Buckets) takeWithoutSlot(
	s *stripe, hash uint64, k key, r *Rate, now clock.Instant, tokens int32, from Source,
) (Place, time.Duration, Outcome) {
	state, cells := b.state.Load(), b.geometry.cells(k)
	ahead := b.estimate(hash, cells, r.rates, r, now)
	next, pass := r.after(ahead, tokens)
	used := next
	if !pass {
		used = ahead
	}
	most := b.mostOfValue(r, tokens)
	if used > 0 {
		got := b.insert(state, k, r, now, used, b.sources.mayLast(from, now, most))
		if got.forgot {
			s.forgotten++
		}
		if got.isLast {
			b.sources.takeLast(from, now, most)
		}
		switch {
		case !pass && got.ok:
			return 0, r.untilPass(next), Refused
		case got.ok:
			return b.place(got.slot, k.tag), r.wait(next), Taken
		}
	}
	if from == UnknownSource {
		return 0, 0, NoSlot
	}
	s.withoutSlot++
	cost := r.toTime.timesUp(r.costOf(int64(tokens)))
	over := b.sources.overSketch(from, now, cost, most)
	if !pass || over > 0 {
		return sketchPlace(cells), max(r.untilPass(next), over), Refused
	}
	b.cells.raise(cells, clock.Instant(int64(now)+r.toTime.timesUp(next)))
	b.sources.takeSketch(from, now, cost)
	return sketchPlace(cells), r.wait(next), Taken
}

// mostOfValue returns the time that a value is ahead which has used all that it may use at once.
func (b *Buckets) mostOfValue(r *Rate, tokens int32) int64 {
	if r.span > 0 {
		return r.toTime.timesUp(r.costOf(int64(tokens))) // of a throttle, one call
	}
	return r.toTime.timesUp(r.top)
}

// lockStripe locks the stripe of a value for a call with some rates, or returns nil if they
// are stale. A call with newer ones takes the table over to them.
func (b *Buckets) lockStripe(k key, rates *Rates, now clock.Instant) *stripe {
	s := &b.stripes[k.tag&(b.geometry.stripes-1)]
	for {
		s.Lock()
		state := b.state.Load()
		if state.accepts == rates {
			return s
		}
		s.Unlock()
		if !b.enter(rates, now) {
			return nil
		}
	}
}

// lookUp returns the slot of a value with its word, which is 0 if it has none, and how far
// ahead the value's instant is, of a class other than r's after conversion. The blocks are
// up to date then; at is now, or a later instant that they have seen.
func (b *Buckets) lookUp(state *bucketState, k key, r *Rate, now clock.Instant) (slot uint64, ahead int64, word uint64, at clock.Instant) {
	for {
		now = b.refreshBoth(k, now)
		slot, word, ok := b.find(k, state.parity>>stateBits|k.tag)
		if !ok {
			return 0, 0, 0, now
		}
		if b.headers[slot/(groupSize*blockGroups)].Load() != state.header(&state.rates.classes[0], now) || b.word(slot).Load() != word {
			continue
		}
		of := state.rates.classOf(word)
		return slot, r.from(of, of.ahead(word, of.units(now))), word, now
	}
}

// classOf returns the rate of the class of a word.
func (r *Rates) classOf(word uint64) *Rate {
	return &r.classes[word&r.classes[0].classMask>>r.classes[0].timeBits]
}

// estimate returns how far ahead a value without a slot is at most, in units of a rate. The
// sketch is of other rates, or the same.
func (b *Buckets) estimate(hash, cells uint64, of *Rates, r *Rate, now clock.Instant) int64 {
	ahead := min(r.furthest, r.toUnits.timesUp(r.rates.estimateFrom(of, b.cells.ahead(cells, now))))
	previous := b.previous.Load()
	switch {
	case previous == nil:
		return ahead
	case int64(now) >= previous.until.Load():
		b.previous.CompareAndSwap(previous, nil)
		return ahead
	}
	return max(ahead, previous.handOver(hash, r, now))
}

// inserted is what became of a value that was to get a slot.
type inserted struct {
	slot   uint64
	forgot bool // the slot was that of another value
	isLast bool // it is one of the last
	ok     bool // it has a slot
}

// insert gives a value a slot that is free, or else the one of the value that has been as new
// for longest, but one of the last only if it may have that. The caller holds the stripe of the
// value.
func (b *Buckets) insert(state *bucketState, k key, r *Rate, now clock.Instant, ahead int64, mayLast bool) inserted {
	for {
		now = b.refreshBoth(k, now)
		units := r.units(now)
		slot, isLast, ok := choose(b.candidate(r, k.first, k.tag, units), b.candidate(r, k.second, k.tag, units))
		if ok && b.hasReturned(slot) {
			slot, isLast, ok = choose(b.overdue(r, k.first, units), b.overdue(r, k.second, units))
		}
		if !ok || isLast && !mayLast {
			return inserted{}
		}
		if forgot, ok := b.insertAt(state, slot, k, r, now, ahead); ok {
			return inserted{slot, forgot, isLast, true}
		}
	}
}

func (b *Buckets) insertAt(state *bucketState, slot uint64, k key, r *Rate, now clock.Instant, ahead int64) (forgot, ok bool) {
	block := slot / (groupSize * blockGroups)
	lock := &b.blocks[block%blockLocks]
	lock.Lock()
	defer lock.Unlock()
	units, word := r.units(now), b.word(slot).Load()
	if b.headers[block].Load() != state.header(r, now) || word != 0 && r.behind(word, units) > -r.rates.classOf(word).graceIf(b.hasReturned(slot)) {
		return false, false
	}
	added := state.parity | k.tag<<stateBits | r.class | (units+uint64(ahead))&r.timeMask
	if !b.word(slot).CompareAndSwap(word, added) {
		return false, false
	}
	if b.hasReturned(slot) {
		b.returned[slot/64].And(^(uint64(1) << (slot % 64)))
	}
	return word != 0, true
}

// candidate leaves out of account that values may have a grace. Of several free slots it
// takes the one that find looks at first.
func (b *Buckets) candidate(r *Rate, group, tag, units uint64) candidate {
	c := candidate{idle: -1}
	for i := range uint64(groupSize) {
		at := (tag + i) % groupSize
		word := b.groups[group][at].Load()
		c.consider(group*groupSize+at, word == 0, -r.behind(word, units))
	}
	return c
}

// overdue is candidate but for values that have a grace.
func (b *Buckets) overdue(r *Rate, group, units uint64) candidate {
	c := candidate{idle: -1}
	for i := range b.groups[group] {
		slot, word := group*groupSize+uint64(i), b.groups[group][i].Load()
		c.consider(slot, word == 0, -r.behind(word, units)-r.rates.classOf(word).graceIf(b.hasReturned(slot)))
	}
	return c
}

// used returns how far ahead a value is, in units of the rate, which may be older or newer
// than the table's.
func (b *Buckets) used(hash uint64, r *Rate, now clock.Instant) int64 {
	k := b.key(hash, tagMask)
	s := &b.stripes[k.tag&(b.geometry.stripes-1)]
	s.Lock()
	defer s.Unlock()
	state := b.state.Load()
	if previous := b.previous.Load(); previous != nil && state.accepts == nil && !state.closed {
		return previous.used(hash, r, now) // this table is not in use yet
	}
	_, ahead, word, _ := b.lookUp(state, k, r, now)
	if word == 0 {
		ahead = b.estimate(hash, b.geometry.cells(k), state.rates, r, now)
	}
	return ahead
}

// GiveBack undoes a Take of so many tokens as though it had never been, if the value still
// has its slot. What was taken by the judgement of the sketch stays taken. A bucket does
// not become more than full; it is not known whether it was full meanwhile, so tokens
// should be given back soon.
func (b *Buckets) GiveBack(p Place, now clock.Instant, tokens int32) {
	b.correct(p, now, -int64(tokens))
}

// Settle adds tokens to what a call took, even beyond what the bucket holds, or gives some
// back if the number is negative, if the value still has its slot: it may have lost it once
// it was as new. Debt is bounded by [Rates.MaxDebt].
func (b *Buckets) Settle(p Place, now clock.Instant, tokens int32) {
	b.correct(p, now, int64(tokens))
}

func (b *Buckets) correct(p Place, now clock.Instant, tokens int64) {
	if cells, yes := p.withoutSlot(); yes {
		b.correctEstimate(cells, now, tokens)
		return
	}
	b.update(p, now, func(r *Rate, ahead int64, _ clock.Instant) int64 {
		if tokens < 0 {
			return max(0, ahead-r.costOf(-tokens))
		}
		return min(r.furthest, ahead+r.costOf(tokens))
	})
}

// correctEstimate adds tokens to an estimate, as those of the class with the highest cost.
func (b *Buckets) correctEstimate(cells uint64, now clock.Instant, tokens int64) {
	if tokens <= 0 {
		return
	}
	s := &b.stripes[cells&(b.geometry.stripes-1)] // any of them: the rates must not change
	s.Lock()
	defer s.Unlock()
	rates, most := b.state.Load().rates, int64(0)
	for i := range rates.classes {
		r := &rates.classes[i]
		most = max(most, r.toTime.timesUp(min(r.furthest, r.costOf(tokens))))
	}
	b.cells.raise(cells, clock.Instant(int64(now)+b.cells.ahead(cells, now)+most))
}

// Cancel undoes a Reserve of so many tokens, for a call that was to pass at an instant. If
// another call has made a reservation since, nothing happens: that one has kept its distance
// already. It may be called when the instant has come or before.
func (b *Buckets) Cancel(p Place, now, at clock.Instant, tokens int32) {
	if _, yes := p.withoutSlot(); yes {
		return
	}
	b.update(p, now, func(r *Rate, ahead int64, now clock.Instant) int64 {
		if last := r.lastPassAt(ahead, now); max(last-at, at-last) > clock.Instant(r.toTime.timesUp(2*r.rounds)) {
			return ahead
		}
		return max(0, ahead-r.costOf(int64(tokens)))
	})
}

// lastPassAt returns when the last call passes or has passed.
func (r *Rate) lastPassAt(ahead int64, now clock.Instant) clock.Instant {
	if ahead < r.span {
		return now - clock.Instant(r.toTime.times(uint64(r.span-ahead)))
	}
	return now.Add(r.wait(ahead))
}

// update changes how far ahead the value at a place is. The function gets the value's rate
// and now, or a later instant that the table has seen. It is not called if the value is
// as new or has lost its slot.
func (b *Buckets) update(p Place, now clock.Instant, change func(r *Rate, ahead int64, now clock.Instant) int64) {
	if p == 0 {
		return
	}
	slot := b.slot(p)
	if slot >= b.slots() {
		return
	}
	word := b.word(slot)
	for {
		at := b.refresh(slot/groupSize, now)
		state, present := b.state.Load(), word.Load()
		if b.headers[slot/(groupSize*blockGroups)].Load() != state.header(&state.rates.classes[0], at) {
			continue
		}
		tag := present >> stateBits & tagMask
		if present == 0 || present&parityBit != state.parity || b.place(slot, tag) != p {
			return
		}
		r := state.rates.classOf(present)
		units := r.units(at)
		ahead := r.ahead(present, units)
		changed := change(r, ahead, at)
		if changed == ahead {
			return
		}
		if word.CompareAndSwap(present, r.moved(present, units+uint64(changed))) {
			if state.closed {
				raise(&b.until, int64(at)+r.toTime.timesUp(changed))
			}
			return
		}
	}
}
