package table

import (
	"math"

	"github.com/penstock-go/penstock/clock"
)

// Charge adds tokens to what a value has used, even beyond what its bucket holds, or takes
// some off if the number is negative. Unlike [Buckets.Settle] it needs no place, and so
// works for a value that has been forgotten since its call passed. The class is that of the
// value. It may be called on a table that another one has taken over.
func (b *Buckets) Charge(hash uint64, class int, now clock.Instant, tokens int32) {
	k := b.key(hash, tagMask)
	s := &b.stripes[k.tag&(b.geometry.stripes-1)]
	s.Lock()
	state := b.state.Load()
	if state.accepts == nil {
		s.Unlock()
		if other := b.inUse(state.closed); other != nil {
			other.Charge(hash, class, now, tokens)
		}
		return
	}
	defer s.Unlock()
	if class >= len(state.rates.classes) {
		class = 0
	}
	r := &state.rates.classes[class]
	for {
		slot, ahead, word, at := b.lookUp(state, k, r, now)
		if word == 0 {
			if tokens > 0 {
				b.chargeWithoutSlot(s, hash, k, r, at, tokens)
			}
			return
		}
		changed := state.parity | k.tag<<stateBits | r.class | (r.units(at)+uint64(r.charged(ahead, tokens)))&r.timeMask
		if b.word(slot).CompareAndSwap(word, changed) {
			return
		}
	}
}

// Reset makes a value as new that has a slot. The class is that of the value.
func (b *Buckets) Reset(hash uint64, class int, now clock.Instant) {
	const enough = 4 // so many times the most tokens is more than any debt
	for range enough {
		b.Charge(hash, class, now, -math.MaxInt32)
	}
}

// Used returns how many tokens are missing in the bucket of a value; of a throttle, how many
// passes it is ahead.
func (b *Buckets) Used(hash uint64, r *Rate, now clock.Instant) float64 {
	return float64(b.used(hash, r, now)) / float64(max(1, r.cost))
}

// inUse returns the table that has taken over from this one, or that this one has not taken
// over from yet.
func (b *Buckets) inUse(closed bool) *Buckets {
	b.change.Lock()
	defer b.change.Unlock()
	if closed {
		return b.successor
	}
	return b.previous.Load()
}

// charged returns how far ahead a value is that has used so many tokens more.
func (r *Rate) charged(ahead int64, tokens int32) int64 {
	if tokens < 0 {
		return max(0, ahead-r.costOf(-int64(tokens)))
	}
	return min(r.furthest, ahead+r.costOf(int64(tokens)))
}

func (b *Buckets) chargeWithoutSlot(s *stripe, hash uint64, k key, r *Rate, now clock.Instant, tokens int32) {
	state, cells := b.state.Load(), b.geometry.cells(k)
	ahead := r.charged(b.estimate(hash, cells, r.rates, r, now), tokens)
	if got := b.insert(state, k, r, now, ahead, true); got.forgot {
		s.forgotten++
	} else if !got.ok {
		b.cells.raise(cells, clock.Instant(int64(now)+r.toTime.timesUp(ahead)))
	}
}

// PlaceOf returns the place of a value; 0 if it has no slot.
func (b *Buckets) PlaceOf(hash uint64) Place {
	k := b.key(hash, tagMask)
	if slot, _, ok := b.find(k, b.state.Load().parity>>stateBits|k.tag); ok {
		return b.place(slot, k.tag)
	}
	return 0
}

// Charge adds tokens to what a value has used: they count from now on, even over the limit.
// If the number is negative they are taken off the bucket of the instant at which they were
// taken, if that is still in the window. Unlike [Windows.Settle] it needs no place, and so
// works for a value that has been forgotten since its call passed. It may be called on a
// table that another one has taken over.
func (w *Windows) Charge(hash uint64, now, taken clock.Instant, tokens int32) {
	k := w.key(hash, windowTagMask)
	w.lockBoth(k)
	terms := w.terms.Load()
	if terms == nil {
		closed := w.closedAt != 0
		w.unlockBoth(k)
		if other := w.inUse(closed); other != nil {
			other.Charge(hash, now, taken, tokens)
		}
		return
	}
	defer w.unlockBoth(k)
	w.convertBoth(k, terms, now)
	for _, group := range [...]uint64{k.first, k.second} {
		if slot, ok := w.find(group, k.tag); ok {
			state := w.read(slot, terms, now)
			if state.charge(terms.number(taken), int64(tokens)) {
				w.write(slot, k.tag, &state)
			}
			return
		}
	}
	if tokens > 0 {
		w.chargeWithoutSlot(hash, k, terms, now, int64(tokens))
	}
}

// Reset makes a value as new that has a slot.
func (w *Windows) Reset(hash uint64, now clock.Instant) {
	w.edit(hash, now, func(state *window) { state.counts = windowCounts{} })
}

// Refund takes tokens off what the window of a value counts that has a slot, the oldest first.
func (w *Windows) Refund(hash uint64, now clock.Instant, tokens int64) {
	w.edit(hash, now, func(state *window) {
		for number := state.newest - windowBuckets + 1; number <= state.newest && tokens > 0; number++ {
			part := min(tokens, int64(state.counts[number%windowBuckets]))
			state.add(number, -part)
			tokens -= part
		}
	})
}

// Has says whether a value has a slot.
func (w *Windows) Has(hash uint64) bool { return w.edit(hash, 0, nil) }

// edit changes the state of a value, if that has a slot, which it returns. Without a change it only
// looks.
func (w *Windows) edit(hash uint64, now clock.Instant, change func(*window)) bool {
	k := w.key(hash, windowTagMask)
	w.lockBoth(k)
	terms := w.terms.Load()
	if terms == nil {
		closed := w.closedAt != 0
		w.unlockBoth(k)
		other := w.inUse(closed)
		return other != nil && other.edit(hash, now, change)
	}
	defer w.unlockBoth(k)
	if change != nil {
		w.convertBoth(k, terms, now)
	}
	for _, group := range [...]uint64{k.first, k.second} {
		slot, ok := w.find(group, k.tag)
		if !ok {
			continue
		}
		if change != nil {
			state := w.read(slot, terms, now)
			change(&state)
			w.write(slot, k.tag, &state)
		}
		return true
	}
	return false
}

func (w *Windows) inUse(closed bool) *Windows {
	w.change.Lock()
	defer w.change.Unlock()
	if closed {
		return w.successor
	}
	return w.previous.Load()
}

// charge counts tokens in the newest bucket, or takes some off an older one. It returns
// false if that is not in the window any more.
func (w *window) charge(number, tokens int64) bool {
	if tokens > 0 {
		number = w.newest
	}
	if number <= w.newest-windowBuckets || number > w.newest {
		return false
	}
	w.add(number, tokens)
	return true
}

func (w *Windows) chargeWithoutSlot(hash uint64, k key, terms *WindowTerms, now clock.Instant, tokens int64) {
	s, cells := w.stripe(k.first), w.geometry.cells(k)
	slot, _, ok := w.victim(k, terms.number(now))
	if !ok {
		s.withoutSlot++
		w.cells.add(cells, terms, now, tokens)
		return
	}
	if *w.word(slot) != 0 {
		s.forgotten++
	}
	state := w.estimate(hash, cells, terms, now)
	state.add(state.newest, tokens)
	w.write(slot, k.tag, &state)
}
