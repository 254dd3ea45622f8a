package table

import "github.com/penstock-go/penstock/clock"

// RemainingAt returns how many tokens the bucket at a place holds, below 0 if it is in debt;
// false if the value has lost its slot.
func (b *Buckets) RemainingAt(p Place, now clock.Instant) (tokens float64, ok bool) {
	if _, yes := p.withoutSlot(); yes {
		return 0, false
	}
	b.update(p, now, func(r *Rate, ahead int64, _ clock.Instant) int64 {
		if r.span == 0 && r.cost > 0 {
			tokens, ok = float64(r.top-r.lack-ahead)/float64(r.cost), true
		}
		return ahead
	})
	return tokens, ok
}

// UsedAt returns how many tokens the window at a place counts; false if the value has lost its
// slot.
func (w *Windows) UsedAt(p Place, now clock.Instant) (used int64, ok bool) {
	if _, yes := p.withoutSlot(); yes || p == 0 {
		return 0, false
	}
	slot := w.slot(p)
	if slot >= w.slots() {
		return 0, false
	}
	s := w.stripe(slot / groupSize)
	s.Lock()
	defer s.Unlock()
	if *w.word(slot) == 0 || s.terms == nil {
		return 0, false
	}
	state, tag := w.read(slot, s.terms, now), *w.word(slot)>>numberBits
	for number := state.newest; number > state.newest-windowBuckets && number >= 0; number-- {
		if w.windowPlace(slot, tag, number) == p {
			return state.sum(), true
		}
	}
	return 0, false
}
