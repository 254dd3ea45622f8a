package table

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// TakeFrom counts tokens for a value if they and those in its window are no more than the
// limit, which is at most 2³²−1. Where the call comes from counts if its value finds no slot.
func (w *Windows) TakeFrom(
	hash uint64, terms *WindowTerms, limit int64, now clock.Instant, tokens int32, from Source,
) (Place, Outcome) {
	if limit = min(limit, 1<<32-1); int64(tokens) > limit {
		return 0, Refused
	}
	k := w.key(hash, windowTagMask)
	s := w.stripe(k.first)
	s.Lock()
	if w.terms.Load() == terms {
		w.convertStripe(s, terms, k.first, now)
		if slot, ok := w.find(k.first, k.tag); ok {
			p, outcome := w.takeAt(slot, terms, limit, now, tokens)
			s.Unlock()
			return p, outcome
		}
	}
	s.Unlock()
	return w.takeSlowly(hash, k, terms, limit, now, tokens, from)
}

func (w *Windows) stripe(group uint64) *windowStripe { return &w.stripes[group/stripeOfGroups] }

// find returns the slot of a tag in a group.
func (w *Windows) find(group, tag uint64) (slot uint64, ok bool) {
	for i := range w.words[group] {
		if w.words[group][i]>>numberBits == tag {
			return group*groupSize + uint64(i), true
		}
	}
	return 0, false
}

func (w *Windows) word(slot uint64) *uint64 { return &w.words[slot/groupSize][slot%groupSize] }

// newest returns the full number of the newest bucket in a word, which is near a present
// one.
func newest(word uint64, present int64) int64 {
	const ahead = 1 << 40 // buckets, for calls that come late
	return present - (int64((uint64(present)-word+ahead)&numberMask) - ahead)
}

// read returns the window in a slot, at an instant or later.
func (w *Windows) read(slot uint64, terms *WindowTerms, now clock.Instant) window {
	number := terms.number(now)
	state := window{newest: newest(*w.word(slot), number), counts: w.counts[slot]}
	state.roll(max(number, state.newest))
	return state
}

func (w *Windows) write(slot, tag uint64, state *window) {
	*w.word(slot) = tag<<numberBits | uint64(state.newest)&numberMask
	w.counts[slot] = state.counts
}

func (w *Windows) takeAt(slot uint64, terms *WindowTerms, limit int64, now clock.Instant, tokens int32) (Place, Outcome) {
	state := w.read(slot, terms, now)
	if state.sum()+int64(tokens) > limit {
		return 0, Refused
	}
	state.add(state.newest, int64(tokens))
	tag := *w.word(slot) >> numberBits
	w.write(slot, tag, &state)
	return w.windowPlace(slot, tag, state.newest), Taken
}

func (w *Windows) windowPlace(slot, tag uint64, number int64) Place {
	return w.place(slot, tag<<bucketBits|uint64(number)&(1<<bucketBits-1))
}

func (w *Windows) takeSlowly(
	hash uint64, k key, terms *WindowTerms, limit int64, now clock.Instant, tokens int32, from Source,
) (Place, Outcome) {
	for {
		w.lockBoth(k)
		if w.terms.Load() == terms {
			break
		}
		w.unlockBoth(k)
		if !w.enter(terms, now) {
			return 0, Stale
		}
	}
	defer w.unlockBoth(k)
	w.convertBoth(k, terms, now)
	for _, group := range [...]uint64{k.first, k.second} {
		if slot, ok := w.find(group, k.tag); ok {
			return w.takeAt(slot, terms, limit, now, tokens)
		}
	}
	return w.takeWithoutSlot(hash, k, terms, limit, now, tokens, from)
}

// takeWithoutSlot gives a value a slot, or judges it by the sketch if there is none.
func (w *Windows) takeWithoutSlot(
	hash uint64, k key, terms *WindowTerms, limit int64, now clock.Instant, tokens int32, from Source,
) (Place, Outcome) {
	s, cells := w.stripe(k.first), w.geometry.cells(k)
	state := w.estimate(hash, cells, terms, now)
	pass := state.sum()+int64(tokens) <= limit
	slot, isLast, ok := w.victim(k, terms.number(now))
	ok = ok && (!isLast || w.sources.mayLast(from, now, terms.length()))
	if ok && (pass || state.sum() > 0) {
		if isLast {
			w.sources.takeLast(from, now, terms.length())
		}
		if *w.word(slot) != 0 {
			s.forgotten++
		}
		if pass {
			state.add(state.newest, int64(tokens))
		}
		w.write(slot, k.tag, &state)
		if pass {
			return w.windowPlace(slot, k.tag, state.newest), Taken
		}
		return 0, Refused
	}
	if from == UnknownSource {
		return 0, NoSlot
	}
	s.withoutSlot++
	cost := int64(math.Ceil(float64(tokens) / float64(limit) * float64(terms.length())))
	if !pass || w.sources.overSketch(from, now, cost, terms.length()) > 0 {
		return sketchPlace(cells), Refused
	}
	w.cells.add(cells, terms, now, int64(tokens))
	w.sources.takeSketch(from, now, cost)
	return sketchPlace(cells), Taken
}

// victim returns a slot that is free, or else the one whose window has been over for
// longest.
func (w *Windows) victim(k key, number int64) (slot uint64, isLast, ok bool) {
	return choose(w.candidate(k.first, number), w.candidate(k.second, number))
}

func (w *Windows) candidate(group uint64, number int64) candidate {
	c := candidate{idle: -1}
	for i, word := range w.words[group] {
		c.consider(group*groupSize+uint64(i), word == 0, number-newest(word, number)-windowBuckets)
	}
	return c
}

// estimate returns a window that counts, in each bucket, at least what a value without a
// slot has used.
func (w *Windows) estimate(hash, cells uint64, terms *WindowTerms, now clock.Instant) window {
	least := w.cells.least(cells, terms, now)
	previous := w.previous.Load()
	switch {
	case previous == nil:
	case int64(now) >= previous.until.Load():
		w.previous.CompareAndSwap(previous, nil)
	default:
		before := previous.state(hash, terms, now)
		for i := range windowBuckets {
			if at := before.newest - int64(i); at >= 0 && least.newest-at < windowBuckets {
				least.roll(max(at, least.newest))
				least.add(at, int64(before.counts[at%windowBuckets]))
			}
		}
	}
	return least
}

// state returns the window of a value, in terms that may be older or newer than the
// table's.
func (w *Windows) state(hash uint64, terms *WindowTerms, now clock.Instant) window {
	k := w.key(hash, windowTagMask)
	w.lockBoth(k)
	defer w.unlockBoth(k)
	if previous := w.previous.Load(); previous != nil && w.present == nil {
		return previous.state(hash, terms, now) // this table is not in use yet
	}
	last := now
	if w.closedAt != 0 {
		last = min(now, w.closedAt) // its windows stand still
	}
	w.convertBoth(k, w.present, last)
	for _, group := range [...]uint64{k.first, k.second} {
		if slot, ok := w.find(group, k.tag); ok {
			return w.read(slot, w.present, last).in(terms, w.present, now, last)
		}
	}
	return w.estimate(hash, w.geometry.cells(k), w.present, last).in(terms, w.present, now, last)
}

// RetryAfter returns how long it takes until such a call passes if nobody else comes: 0 if
// it would pass now, [rule.Never] if it cannot pass at all.
func (w *Windows) RetryAfter(hash uint64, terms *WindowTerms, limit int64, now clock.Instant, tokens int32) time.Duration {
	if int64(tokens) > limit {
		return rule.Never
	}
	state := w.state(hash, terms, now)
	if state.sum()+int64(tokens) <= limit {
		return 0
	}
	for state.sum()+int64(tokens) > limit {
		state.roll(terms.next(state.newest))
	}
	return terms.begin(state.newest).Sub(now)
}

// Used returns how many tokens the window of a value counts.
func (w *Windows) Used(hash uint64, terms *WindowTerms, now clock.Instant) int64 {
	state := w.state(hash, terms, now)
	return state.sum()
}

// GiveBack undoes a Take of so many tokens, if the value still has its slot and the bucket
// in which they count is still in the window. What was taken by the judgement of the sketch
// stays taken.
func (w *Windows) GiveBack(p Place, now clock.Instant, tokens int32) {
	w.Settle(p, now, -tokens)
}

// Settle adds tokens to the bucket in which a call counts, even over the limit, or takes
// some off if the number is negative, if that bucket is still in the window.
func (w *Windows) Settle(p Place, now clock.Instant, tokens int32) {
	if p == 0 {
		return
	}
	if cells, yes := p.withoutSlot(); yes {
		w.settleInSketch(cells, now, int64(tokens))
		return
	}
	slot := w.slot(p)
	if slot >= w.slots() {
		return
	}
	s := w.stripe(slot / groupSize)
	s.Lock()
	defer s.Unlock()
	if *w.word(slot) == 0 || s.terms == nil {
		return
	}
	state, tag := w.read(slot, s.terms, now), *w.word(slot)>>numberBits
	for number := state.newest; number > state.newest-windowBuckets && number >= 0; number-- {
		if w.windowPlace(slot, tag, number) == p {
			state.add(number, int64(tokens))
			w.write(slot, tag, &state)
			return
		}
	}
}

func (w *Windows) settleInSketch(cells uint64, now clock.Instant, tokens int64) {
	if terms := w.terms.Load(); terms != nil && tokens > 0 {
		w.cells.add(cells, terms, now, tokens)
	}
}
