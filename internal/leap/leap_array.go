package leap

import (
	"math/bits"
	"time"

	"github.com/penstock-go/penstock/stat"
)

// KeptSeconds is how many seconds of a resource can be read, the open one included.
const KeptSeconds = 60

// leapArray is the seconds of the last minute, a row each, in a ring. A second is written
// when it ends. Each column is as many bytes wide as the largest number that was ever
// written to it. So an event that never happens costs nothing, and a call in every second
// costs 9 bytes a row instead of 64. When a number does not fit, all rows are copied into a
// wider array. The zero value is an empty minute.
type leapArray struct {
	widths [columns]uint8 // in bytes
	cells  []byte         // KeptSeconds rows of the widths' sum
}

// kept is what is kept of a second.
type kept struct {
	stat.Second
	by [ownTallies]uint64 // of the blocked ones, those by the first Refusals
}

const columns = 8 + ownTallies

const (
	columnPassed    = 0
	columnBlocked   = 1
	columnBlockedBy = 8 // the first of ownTallies
)

// row is what is kept of a second; durations are in nanoseconds.
type row [columns]uint64

func rowOf(s *kept) row {
	return row{
		s.Passed, s.Blocked, s.Completed, s.Failed, s.Waited,
		uint64(s.ResponseTime), uint64(s.MaxResponseTime), s.MaxInFlight,
		s.by[0], s.by[1], s.by[2], s.by[3],
	}
}

// put writes a second over what stood in its place.
func (a *leapArray) put(second int64, s *kept) {
	r := rowOf(s)
	a.makeRoomFor(&r)
	a.write(slotOf(second), &r)
}

// get reads a second into s.
func (a *leapArray) get(second int64, s *kept) {
	r := a.read(slotOf(second))
	s.Passed, s.Blocked, s.Completed, s.Failed, s.Waited = r[0], r[1], r[2], r[3], r[4]
	s.ResponseTime = time.Duration(r[5])
	s.MaxResponseTime = time.Duration(r[6])
	s.MaxInFlight = r[7]
	copy(s.by[:], r[8:])
}

// sum returns the sum of a column over the seconds from one to another, which is not part of it: at
// most [KeptSeconds].
func (a *leapArray) sum(column int, from, to int64) (sum uint64) {
	width := int(a.widths[column])
	if width == 0 {
		return 0
	}
	start := 0
	for _, before := range a.widths[:column] {
		start += int(before)
	}
	size := len(a.cells) / KeptSeconds
	for slot := slotOf(from); from < to; from++ {
		cell := a.cells[slot*size+start:][:width]
		for b, digits := range cell {
			sum += uint64(digits) << (8 * b)
		}
		if slot++; slot == KeptSeconds {
			slot = 0
		}
	}
	return sum
}

// makeRoomFor widens the columns that are too narrow for a row.
func (a *leapArray) makeRoomFor(r *row) {
	wider, size := a.widths, 0
	for i, n := range r {
		wider[i] = max(wider[i], uint8((bits.Len64(n)+7)/8))
		size += int(wider[i])
	}
	if wider == a.widths {
		return
	}
	next := leapArray{widths: wider, cells: make([]byte, KeptSeconds*size)}
	for slot := range KeptSeconds {
		old := a.read(slot)
		next.write(slot, &old)
	}
	*a = next
}

func (a *leapArray) write(slot int, r *row) {
	cells := a.at(slot)
	for i, width := range a.widths {
		for b := range width {
			cells[b] = byte(r[i] >> (8 * b))
		}
		cells = cells[width:]
	}
}

func (a *leapArray) read(slot int) (r row) {
	cells := a.at(slot)
	for i, width := range a.widths {
		for b := range width {
			r[i] |= uint64(cells[b]) << (8 * b)
		}
		cells = cells[width:]
	}
	return r
}

// at returns the cells of a row.
func (a *leapArray) at(slot int) []byte {
	size := len(a.cells) / KeptSeconds
	return a.cells[slot*size:][:size]
}

func slotOf(second int64) int {
	return int((second%KeptSeconds + KeptSeconds) % KeptSeconds)
}

// nanos returns a duration in nanoseconds, negative ones as zero.
func nanos(d time.Duration) uint64 { return uint64(max(0, d)) }
