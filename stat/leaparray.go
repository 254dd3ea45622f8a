package stat

import (
	"math"
	"time"
)

// Remembered is how many seconds of a [Node] can be read back, the one that is
// open included.
const Remembered = 60

// leapArray is the buckets of the last minute's seconds, reused in a ring: each
// second is written when it ends. Counts of one kind stand together, and kinds
// that never happen take no memory. What does not fit stays at the most.
type leapArray struct {
	passed, completed            [Remembered]uint32
	maxInFlight, maxResponseTime [Remembered]uint32 // the latter in microseconds
	responseTime                 [Remembered]uint32 // microseconds, the low bits
	responseTimeHigh             [Remembered]uint8  // and the high ones

	blocked, failed, waited *[Remembered]uint32
}

const maxResponseTimeSum = 1<<40 - 1 // microseconds in a second: 12 days of them

func slotOf(second int64) int { return int((second%Remembered + Remembered) % Remembered) }

// put writes a second over what stood in its place.
func (a *leapArray) put(second int64, s *Second) {
	i := slotOf(second)
	a.passed[i], a.completed[i] = narrow(s.Passed), narrow(s.Completed)
	a.maxInFlight[i] = narrow(s.MaxInFlight)
	a.maxResponseTime[i] = narrow(micros(s.MaxResponseTime))
	sum := min(micros(s.ResponseTime), maxResponseTimeSum)
	a.responseTime[i], a.responseTimeHigh[i] = uint32(sum), uint8(sum>>32)
	putRare(&a.blocked, i, s.Blocked)
	putRare(&a.failed, i, s.Failed)
	putRare(&a.waited, i, s.Waited)
}

// get reads a second into s.
func (a *leapArray) get(second int64, s *Second) {
	i := slotOf(second)
	s.Passed, s.Completed = uint64(a.passed[i]), uint64(a.completed[i])
	s.MaxInFlight = uint64(a.maxInFlight[i])
	s.MaxResponseTime = time.Duration(a.maxResponseTime[i]) * time.Microsecond
	s.ResponseTime = time.Duration(uint64(a.responseTimeHigh[i])<<32|uint64(a.responseTime[i])) * time.Microsecond
	s.Blocked, s.Failed, s.Waited = getRare(a.blocked, i), getRare(a.failed, i), getRare(a.waited, i)
}

func putRare(counts **[Remembered]uint32, i int, n uint64) {
	if *counts == nil {
		if n == 0 {
			return
		}
		*counts = new([Remembered]uint32)
	}
	(*counts)[i] = narrow(n)
}

func getRare(counts *[Remembered]uint32, i int) uint64 {
	if counts == nil {
		return 0
	}
	return uint64(counts[i])
}

func narrow(n uint64) uint32 { return uint32(min(n, math.MaxUint32)) }

// micros returns a duration in whole microseconds, negative ones as zero.
func micros(d time.Duration) uint64 { return uint64(max(0, d+time.Microsecond/2) / time.Microsecond) }
