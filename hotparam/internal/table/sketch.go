package table

import (
	"math/bits"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/splitmix"
)

// sketchRows is how many cells of a sketch a value has.
const sketchRows = 4

// cellOf returns the index of a value's i-th cell among so many.
func cellOf(cells uint64, i int, among int) uint64 {
	index, _ := bits.Mul64(splitmix.Mix(cells+uint64(i+1)*golden), uint64(among))
	return index
}

// instants is a sketch of when values are as new. Each cell has the latest instant of all
// values that have it, so the earliest of a value's cells is never too early. Its methods
// are safe for concurrent use; calls for the same value must be serialised by the caller.
type instants struct {
	cells  []atomic.Int64
	latest atomic.Int64 // no cell has a later instant; mostly nothing is in the sketch
}

// ahead returns how far the estimate for a value is ahead of now, in nanoseconds.
func (s *instants) ahead(cells uint64, now clock.Instant) int64 {
	if s.latest.Load() <= int64(now) {
		return 0
	}
	at := s.cells[cellOf(cells, 0, len(s.cells))].Load()
	for i := 1; i < sketchRows; i++ {
		at = min(at, s.cells[cellOf(cells, i, len(s.cells))].Load())
	}
	return max(0, at-int64(now))
}

// raise makes the estimate for a value at least an instant.
func (s *instants) raise(cells uint64, at clock.Instant) {
	raise(&s.latest, int64(at))
	for i := range sketchRows {
		raise(&s.cells[cellOf(cells, i, len(s.cells))], int64(at))
	}
}

// convert changes all instants. The function never makes an earlier one later than a later
// one. No other call may be under way.
func (s *instants) convert(to func(at int64) int64) {
	for i := range s.cells {
		s.cells[i].Store(to(s.cells[i].Load()))
	}
	s.latest.Store(to(s.latest.Load()))
}

// raise makes a number no lower than another.
func raise(n *atomic.Int64, to int64) {
	for {
		present := n.Load()
		if present >= to || n.CompareAndSwap(present, to) {
			return
		}
	}
}
