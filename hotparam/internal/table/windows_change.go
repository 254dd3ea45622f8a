package table

import (
	"unsafe"

	"github.com/penstock-go/penstock/clock"
)

// Adopt returns the table for another version of the rule: this one, or, for another
// maxValues, a new one that takes over from it. Nothing changes until the new terms are
// activated or a call comes with them. Until all that a table has taken over has left the
// window, it cannot be taken over itself: then the size stays.
//
// What a value has used stays used. When the window changes, what a bucket counts is taken
// to have been used when that bucket ended, or, if it is open, at the change.
func (w *Windows) Adopt(maxValues int, now clock.Instant) *Windows {
	w.change.Lock()
	defer w.change.Unlock()
	if w.successor != nil {
		return w.successor.Adopt(maxValues, now)
	}
	previous := w.previous.Load()
	if previous != nil && w.terms.Load() != nil && int64(now) >= previous.until.Load() {
		w.previous.CompareAndSwap(previous, nil)
		previous = nil
	}
	if maxValues == w.maxValues || previous != nil {
		return w
	}
	next := newWindows(maxValues)
	next.previous.Store(w)
	return next
}

// Grow is [Buckets.Grow].
func (w *Windows) Grow(maxValues int, now clock.Instant) *Windows {
	w.change.Lock()
	taken := w.successor != nil
	w.change.Unlock()
	if taken || maxValues <= w.maxValues {
		return w
	}
	next := w.Adopt(maxValues, now)
	if next == w || next.previous.Load() != w || !next.takeOver(w, now) {
		return w
	}
	return next
}

// takeOver goes over to the terms of the table that this one is to take over from.
func (w *Windows) takeOver(previous *Windows, now clock.Instant) bool {
	w.change.Lock()
	defer w.change.Unlock()
	previous.change.Lock()
	defer previous.change.Unlock()
	terms := previous.terms.Load()
	if terms == nil || previous.successor != nil {
		return false
	}
	previous.closeFor(w, now)
	previous.extend(terms)
	w.goOver(terms, now)
	counted := previous.Stats(now)
	w.stripes[0].Lock()
	defer w.stripes[0].Unlock()
	w.stripes[0].forgotten, w.stripes[0].withoutSlot = counted.Forgotten, counted.WithoutSlot
	return true
}

// Activate goes over to newer terms. Calls with older ones are stale from then on. It takes
// some milliseconds for a million values if the window has changed, in which calls go on.
// It does nothing if the terms are not newer.
func (w *Windows) Activate(terms *WindowTerms, now clock.Instant) {
	if !w.enter(terms, now) {
		return
	}
	for i := range w.stripes {
		s := &w.stripes[i]
		s.Lock()
		if w.terms.Load() == terms {
			w.convertStripe(s, terms, uint64(i)*stripeOfGroups, now)
		}
		s.Unlock()
	}
	w.change.Lock()
	w.converted = terms
	w.change.Unlock()
}

// enter goes over to newer terms, but for the slots. It returns false if the terms are
// older than the present ones, or if another table has taken over.
func (w *Windows) enter(terms *WindowTerms, now clock.Instant) bool {
	w.change.Lock()
	defer w.change.Unlock()
	present := w.terms.Load()
	if present == terms {
		return true
	}
	if w.successor != nil || present != nil && terms.version <= present.version {
		return false
	}
	if previous := w.previous.Load(); previous != nil && present == nil {
		previous, closed := previous.close(w, terms, now)
		if !closed {
			return false
		}
		w.previous.Store(previous)
	}
	if previous := w.previous.Load(); previous != nil && int64(now) < previous.until.Load() {
		previous.extend(terms)
	}
	w.goOver(terms, now)
	return true
}

// goOver goes over to other terms. The caller holds the change.
func (w *Windows) goOver(terms *WindowTerms, now clock.Instant) {
	w.lockAll()
	defer w.unlockAll()
	present := w.terms.Load()
	if w.converted != present { // two changes at once: it is known only of one when it was
		for i := range w.stripes {
			w.convertStripe(&w.stripes[i], present, uint64(i)*stripeOfGroups, now)
		}
	}
	if w.present != nil {
		w.cells.convert(terms, w.present, now)
		longer := float64(terms.length()) / float64(w.present.length())
		w.sources.convert(func(at int64) int64 {
			return int64(now) + int64(float64(max(0, at-int64(now)))*longer)
		})
	}
	w.present, w.changedAt = terms, now
	w.terms.Store(terms)
}

// close makes all further calls stale, because another table takes over. If one has done so
// already, that one is closed. It returns the table that was closed.
func (w *Windows) close(successor *Windows, terms *WindowTerms, now clock.Instant) (*Windows, bool) {
	w.change.Lock()
	defer w.change.Unlock()
	if w.successor != nil {
		return w.successor.close(successor, terms, now)
	}
	present := w.terms.Load()
	if present == nil || terms.version <= present.version {
		return nil, false
	}
	w.closeFor(successor, now)
	w.extend(present)
	w.extend(terms)
	return w, true
}

// closeFor makes calls stale. The caller holds the change.
func (w *Windows) closeFor(successor *Windows, now clock.Instant) {
	w.lockAll()
	defer w.unlockAll()
	w.terms.Store(nil)
	w.successor, w.closedAt = successor, now
}

// extend makes a closed table count until its windows are over in these terms, too.
func (w *Windows) extend(terms *WindowTerms) {
	// What counts last is in the bucket that was open when the table was closed, or in a
	// later one that calls had seen.
	w.until.Store(max(w.until.Load(), int64(w.closedAt)+(2*windowBuckets)*terms.bucket))
}

func (w *Windows) lockAll() {
	for i := range w.stripes {
		w.stripes[i].Lock()
	}
}

func (w *Windows) unlockAll() {
	for i := range w.stripes {
		w.stripes[i].Unlock()
	}
}

// lockBoth locks the stripes of a value's groups.
func (w *Windows) lockBoth(k key) {
	first, second := w.stripe(min(k.first, k.second)), w.stripe(max(k.first, k.second))
	first.Lock()
	if second != first {
		second.Lock()
	}
}

func (w *Windows) unlockBoth(k key) {
	first, second := w.stripe(k.first), w.stripe(k.second)
	first.Unlock()
	if second != first {
		second.Unlock()
	}
}

func (w *Windows) convertBoth(k key, terms *WindowTerms, now clock.Instant) {
	w.convertStripe(w.stripe(k.first), terms, k.first, now)
	w.convertStripe(w.stripe(k.second), terms, k.second, now)
}

// convertStripe brings the slots of a stripe, that of a group, to the table's terms. What
// they counted when the terms changed stays, however much later that is.
func (w *Windows) convertStripe(s *windowStripe, terms *WindowTerms, group uint64, now clock.Instant) {
	if s.terms == terms {
		return
	}
	of := s.terms
	s.terms = terms
	if of == nil || of.countsLike(terms) {
		return
	}
	from, last := group/stripeOfGroups*stripeOfGroups, min(now, w.changedAt)
	for g := from; g < min(from+stripeOfGroups, w.groups); g++ {
		for i, word := range w.words[g] {
			if word == 0 {
				continue
			}
			slot := g*groupSize + uint64(i)
			state := w.read(slot, of, last).in(terms, of, now, last)
			if state.sum() == 0 {
				w.words[g][i] = 0
				continue
			}
			w.write(slot, word>>numberBits, &state)
		}
	}
}

// in returns a window in other terms. Nothing has been counted in it after an instant, which
// is now or earlier.
func (w window) in(terms, of *WindowTerms, now, last clock.Instant) window {
	if terms.countsLike(of) {
		return w
	}
	converted := window{newest: terms.number(now)}
	for i := range int64(windowBuckets) {
		number := w.newest - i
		if number < 0 {
			break
		}
		end := of.begin(of.next(number)) - 1
		if to := terms.number(min(end, last)); converted.newest-to < windowBuckets {
			converted.add(to, int64(w.counts[number%windowBuckets]))
		}
	}
	return converted
}

// Stats returns the counts of the table. It reads all of it.
func (w *Windows) Stats(now clock.Instant) Stats {
	const cell = int(unsafe.Sizeof(windowCell{}))
	stats := Stats{Capacity: int(w.slots()), Bytes: w.bytes(8+4*windowBuckets, cell) + 8*len(w.sources.cells)}
	for i := range w.stripes {
		s := &w.stripes[i]
		s.Lock()
		stats.Forgotten += s.forgotten
		stats.WithoutSlot += s.withoutSlot
		for group := uint64(i) * stripeOfGroups; group < min((uint64(i)+1)*stripeOfGroups, w.groups) && s.terms != nil; group++ {
			number := s.terms.number(now)
			for _, word := range w.words[group] {
				if word != 0 && number-newest(word, number) < windowBuckets {
					stats.Occupied++
				}
			}
		}
		s.Unlock()
	}
	return stats
}
