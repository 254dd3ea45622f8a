// Package share computes shares from counters that are read again and again.
package share

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

const (
	// MinInterval is the shortest time between two readings of a counter. Sooner, the
	// ticks of the counters, of 10 ms, would count for too much.
	MinInterval = 50 * time.Millisecond

	// Window is the time over which a Mean is taken. It covers ten periods of a CPU
	// quota, which usually has 100 ms: a process that uses up its quota at the beginning
	// of each period would else seem to use sometimes more and sometimes less.
	Window = time.Second
)

// Readings tells which readings are far enough apart. The zero value is ready for use.
type Readings struct {
	last  clock.Instant
	begun bool
}

// Due reports whether the last reading that was due is at least MinInterval ago, and if so
// makes this one the last. The first is due.
func (r *Readings) Due(now clock.Instant) bool {
	if r.begun && now.Sub(r.last) < MinInterval {
		return false
	}
	r.last, r.begun = now, true
	return true
}

// Mean is a share over the last Window, or over the last interval between two readings if
// that is longer. The zero value is ready for use and 0.
type Mean struct {
	parts []part // oldest first
}

// part is an interval between two readings.
type part struct {
	from     clock.Instant
	used, of float64
}

// Add says how much was used, of how much, from one reading to the next. Intervals follow
// each other. The share of an interval of nothing does not count.
func (m *Mean) Add(from, to clock.Instant, used, of float64) {
	if !(of > 0) { // nor NaN
		return
	}
	keep := 0
	for keep < len(m.parts) && to.Sub(m.parts[keep].from) > Window+MinInterval {
		keep++
	}
	m.parts = append(m.parts[:0], m.parts[keep:]...)
	m.parts = append(m.parts, part{from: from, used: used, of: of})
}

// Value returns the share, from 0 to 1.
func (m *Mean) Value() float64 {
	var used, of float64
	for _, p := range m.parts {
		used += p.used
		of += p.of
	}
	if !(of > 0) {
		return 0
	}
	return min(max(used/of, 0), 1)
}
