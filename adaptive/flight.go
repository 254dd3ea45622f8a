package adaptive

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
	"github.com/penstock-go/penstock/clock"
)

// flight counts the calls under way, and what is measured of them. It needs no lock:
//
//	calls  = call-time, 44 bits | calls under way, 20 bits
//	ends   = sum of response times, 40 bits | calls that ended, 24 bits
//
// The call-time is the integral of the calls under way over the time, less the number
// under way times the present time: a call takes the time at which it begins from it, and
// adds the time at which it ends. All numbers count on and overflow: only differences are
// used. Times are in units of 1.024 µs.
type flight struct {
	calls   atomic.Uint64
	ends    atomic.Uint64
	squares atomic.Uint64 // sum of the squares of response times
	failed  atomic.Uint64 // calls that failed late, 32 bits | calls that failed, 32 bits
	quick   atomic.Uint64 // of these, those that failed sooner than others end: as ends
	lost    atomic.Uint64 // sum of the response times of those that failed
}

const (
	callsBits = 20
	callsMask = 1<<callsBits - 1
	timeMask  = 1<<(64-callsBits) - 1
	endsBits  = 24
	endsMask  = 1<<endsBits - 1

	unitShift     = 10 // nanoseconds in a unit of time, as a power of 2
	unitsASecond  = float64(time.Second) / (1 << unitShift)
	longestSquare = 1 << 24 // units: no response time counts as longer in the squares
	squared       = 2       // the squares are those of every so many-th call, which saves time
)

func units(t clock.Instant) uint64 { return uint64(t) >> unitShift }

// underWay returns the number of calls under way.
func (f *flight) underWay() uint64 { return f.calls.Load() & callsMask }

// resume counts a call that begins, or goes on.
func (f *flight) resume(now clock.Instant) { f.calls.Add(1 - units(now)<<callsBits) }

// leave counts a call that is not under way any more.
func (f *flight) leave(now clock.Instant) { f.calls.Add(units(now)<<callsBits - 1) }

// end counts what is measured of a call that ended. Late is the response time from which on
// a failure is a sign of overload, and quick the one up to which it is not how long others take.
func (f *flight) end(took time.Duration, failed bool, quick, late time.Duration) {
	response := uint64(max(took, 0)) >> unitShift
	if n := f.ends.Add(response<<endsBits + 1); n%squared == 0 {
		short := min(response, longestSquare)
		f.squares.Add(squared * short * short)
	}
	if failed {
		count := uint64(1)
		if took >= late {
			count += 1 << 32
		}
		if took < quick {
			f.quick.Add(response<<endsBits + 1)
		}
		f.failed.Add(count)
		f.lost.Add(response)
	}
}

// counts are the numbers of a flight at an instant.
type counts struct {
	at                                     clock.Instant
	callTime, ends, squares, failed, quick uint64
	lost, underWay                         uint64
}

func (f *flight) read(now clock.Instant) counts {
	calls := f.calls.Load()
	return counts{
		at:       now,
		callTime: calls>>callsBits + calls&callsMask*units(now), underWay: calls & callsMask,
		ends: f.ends.Load(), squares: f.squares.Load(), failed: f.failed.Load(), quick: f.quick.Load(),
		lost: f.lost.Load(),
	}
}

// since returns what calls did between two instants.
func (c counts) since(before counts) limit.Window {
	ends, failed, quick := c.ends-before.ends, c.failed-before.failed, c.quick-before.quick
	return limit.Window{
		Length:  c.at.Sub(before.at),
		Ends:    float64(ends & endsMask),
		Ended:   float64(ends & endsMask),
		Times:   float64(ends>>endsBits) / unitsASecond,
		Squares: float64(c.squares-before.squares) / (unitsASecond * unitsASecond),
		Failed:  float64(failed & (1<<32 - 1)),
		Late:    float64(failed >> 32),
		Lost:    float64(c.lost-before.lost) / unitsASecond,
		Quick:   float64(quick & endsMask), QuickTimes: float64(quick>>endsBits) / unitsASecond,
		Growth: float64(c.underWay) - float64(before.underWay),
		Calls:  float64((c.callTime-before.callTime)&timeMask) / unitsASecond,
	}
}
