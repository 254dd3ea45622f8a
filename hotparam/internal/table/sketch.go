package table

import (
	"math/bits"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
)

// sketchRows is how many cells of a sketch a value has.
const sketchRows = 4

// cellOf returns the index of a value's i-th cell among so many.
func cellOf(cells uint64, i int, among int) uint64 {
	index, _ := bits.Mul64(mix(cells+uint64(i+1)*golden), uint64(among))
	return index
}

// instants is a sketch of when values are as new. Each cell has the latest instant of all
// values that have it, so the earliest of a value's cells is never too early. Its methods
// are safe for concurrent use; calls for the same value must be serialised by the caller.
type instants []atomic.Int64

// ahead returns how far the estimate for a value is ahead of now, in nanoseconds.
func (s instants) ahead(cells uint64, now clock.Instant) int64 {
	at := s[cellOf(cells, 0, len(s))].Load()
	for i := 1; i < sketchRows; i++ {
		at = min(at, s[cellOf(cells, i, len(s))].Load())
	}
	return max(0, at-int64(now))
}

// raise makes the estimate for a value at least an instant.
func (s instants) raise(cells uint64, at clock.Instant) {
	for i := range sketchRows {
		raise(&s[cellOf(cells, i, len(s))], int64(at))
	}
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

// add moves the cells of a value further ahead by so many nanoseconds.
func (s instants) add(cells uint64, now clock.Instant, by int64) {
	at := int64(now) + s.ahead(cells, now) + by
	s.raise(cells, clock.Instant(at))
}
