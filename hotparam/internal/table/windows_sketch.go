package table

import (
	"slices"
	"sync"

	"github.com/penstock-go/penstock/clock"
)

// windowSketch is a sketch of windows. Each cell counts, in each bucket, no less than each of the
// keys that have it. Its methods are safe for concurrent use.
type windowSketch []windowCell

type windowCell struct {
	sync.Mutex
	window
}

// cellsOf are the cells of a key, in their order, each of them once.
type cellsOf struct {
	cells [sketchRows]*windowCell
	count int
}

// lock locks the cells of a key.
func (s windowSketch) lock(key uint64) (of cellsOf) {
	var at [sketchRows]uint64
	for i := range at {
		at[i] = cellOf(key, i, len(s))
	}
	slices.Sort(at[:])
	for _, index := range slices.Compact(at[:]) {
		of.cells[of.count] = &s[index]
		of.cells[of.count].Lock()
		of.count++
	}
	return of
}

func (of *cellsOf) unlock() {
	for _, cell := range of.cells[:of.count] {
		cell.Unlock()
	}
}

// least returns a window that counts what all cells do, up to the bucket of an instant at least.
func (of *cellsOf) least(number int64) (least window) {
	for i, cell := range of.cells[:of.count] {
		counted := cell.window
		if number-counted.newest >= windowBuckets {
			counted = window{newest: number}
		}
		counted.roll(max(number, counted.newest))
		if i == 0 {
			least = counted
			continue
		}
		least.least(counted)
	}
	return least
}

// least returns a window that counts at least what a key has used.
func (s windowSketch) least(key uint64, terms *WindowTerms, now clock.Instant) window {
	of := s.lock(key)
	defer of.unlock()
	return of.least(terms.number(now))
}

// add counts what a key uses. Cells that count more already, of other keys, stay as they are.
func (s windowSketch) add(key uint64, terms *WindowTerms, now clock.Instant, tokens int64) {
	of := s.lock(key)
	defer of.unlock()
	least := of.least(terms.number(now))
	least.add(least.newest, tokens)
	number := least.newest
	for _, cell := range of.cells[:of.count] {
		cell.roll(max(number, cell.newest))
		cell.counts[number%windowBuckets] = max(cell.counts[number%windowBuckets], least.counts[number%windowBuckets])
	}
}

// convert goes over to other terms. No other call may be under way.
func (s windowSketch) convert(terms, of *WindowTerms, now clock.Instant) {
	for i := range s {
		s[i].window = s[i].in(terms, of, now, now)
	}
}

// least makes each bucket the smaller one of two windows.
func (w *window) least(other window) {
	last := max(w.newest, other.newest)
	w.roll(last)
	other.roll(last)
	for i := range w.counts {
		w.counts[i] = min(w.counts[i], other.counts[i])
	}
}
