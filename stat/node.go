package stat

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Node is the statistics of one resource. The zero value is ready; all methods
// are safe for concurrent use, lock-free, and allocate only the first time that
// something of a kind happens.
//
// A call is told to the node as Enter, Pass and Done, or as Block; a call that
// had to wait, before that, as BeginWait and EndWait. Calls count, not tokens.
type Node struct {
	inFlight atomic.Int64 // between Enter and Done
	waiting  atomic.Int64 // between BeginWait and EndWait

	passed, blocked, completed, failed, waited series
	responseTime, waitTime                     series // microseconds
	maxResponseTime                            series // microseconds
	maxInFlight                                series

	responseTimes Histogram
}

// Enter counts a call as under way and returns how many there are with it.
func (n *Node) Enter() (inFlight int64) { return n.inFlight.Add(1) }

// Leave takes back an Enter that no Pass followed.
func (n *Node) Leave() { n.inFlight.Add(-1) }

// Pass counts a call that was let through at now, the given number being under
// way.
func (n *Node) Pass(now clock.Instant, inFlight int64) {
	second := secondOf(now)
	n.passed.array().Add(second, 1)
	n.maxInFlight.array().Raise(second, uint64(inFlight))
}

// Block counts a call that was refused at now.
func (n *Node) Block(now clock.Instant) { n.blocked.array().Add(secondOf(now), 1) }

// Done counts the end, at now, of a call that was let through at start.
func (n *Node) Done(start, now clock.Instant, failed bool) {
	n.inFlight.Add(-1)
	second, took := secondOf(now), now.Sub(start)
	micros := uint64(max(0, (took + time.Microsecond/2).Microseconds()))
	n.completed.array().Add(second, 1)
	n.responseTime.array().Add(second, micros)
	n.maxResponseTime.array().Raise(second, micros)
	n.responseTimes.Record(took)
	if failed {
		n.failed.array().Add(second, 1)
	}
}

// BeginWait counts a call that has to wait.
func (n *Node) BeginWait() { n.waiting.Add(1) }

// EndWait counts the end, at now, of a wait that began at start, however it
// ended.
func (n *Node) EndWait(start, now clock.Instant) {
	n.waiting.Add(-1)
	n.waited.array().Add(secondOf(now), 1)
	n.waitTime.array().Add(secondOf(now), uint64(max(0, now.Sub(start).Microseconds())))
}

// InFlight returns how many calls are between Enter and Done.
func (n *Node) InFlight() int64 { return n.inFlight.Load() }

// Waiting returns how many calls are waiting.
func (n *Node) Waiting() int64 { return n.waiting.Load() }

// Totals returns the sums since the node was made, and the present state. Each
// sum is exact; one read after another, they may differ by calls that happened
// in between.
func (n *Node) Totals() Totals {
	return Totals{
		InFlight:      n.inFlight.Load(),
		Waiting:       n.waiting.Load(),
		Passed:        n.passed.total(),
		Blocked:       n.blocked.total(),
		Completed:     n.completed.total(),
		Failed:        n.failed.total(),
		Waited:        n.waited.total(),
		WaitTime:      time.Duration(n.waitTime.total()) * time.Microsecond,
		ResponseTime:  time.Duration(n.responseTime.total()) * time.Microsecond,
		ResponseTimes: n.responseTimes.Snapshot(),
	}
}

// Minute returns the last 60 seconds, oldest first; the last of them is the one
// that now is in.
func (n *Node) Minute(now clock.Instant) []Second {
	last := secondOf(now)
	minute := make([]Second, 0, Remembered)
	for s := last - Remembered + 1; s <= last; s++ {
		minute = append(minute, n.Second(s))
	}
	return minute
}

// Second returns what happened in one calendar second, given as seconds since
// the epoch. It is remembered for a minute at least.
func (n *Node) Second(second int64) Second {
	return Second{
		Start:           clock.Instant(second * int64(time.Second)),
		Passed:          n.passed.get(second),
		Blocked:         n.blocked.get(second),
		Completed:       n.completed.get(second),
		Failed:          n.failed.get(second),
		Waited:          n.waited.get(second),
		ResponseTime:    time.Duration(n.responseTime.get(second)) * time.Microsecond,
		MaxResponseTime: time.Duration(n.maxResponseTime.get(second)) * time.Microsecond,
		MaxInFlight:     n.maxInFlight.get(second),
	}
}

// Idle says whether nothing passed, was blocked or ended in the minute
// before now, and nothing is under way.
func (n *Node) Idle(now clock.Instant) bool {
	if n.InFlight() > 0 || n.Waiting() > 0 {
		return false
	}
	last := secondOf(now)
	for s := last - Remembered + 1; s <= last; s++ {
		if n.passed.get(s)+n.blocked.get(s)+n.completed.get(s)+n.waited.get(s) > 0 {
			return false
		}
	}
	return true
}

func secondOf(i clock.Instant) int64 { return int64(i) / int64(time.Second) }

// series is a LeapArray by the second that takes no memory until it is used.
type series struct{ made atomic.Pointer[LeapArray] }

func (s *series) array() *LeapArray {
	if a := s.made.Load(); a != nil {
		return a
	}
	s.made.CompareAndSwap(nil, new(LeapArray))
	return s.made.Load()
}

func (s *series) get(second int64) uint64 {
	if a := s.made.Load(); a != nil {
		return a.Get(second)
	}
	return 0
}

func (s *series) total() uint64 {
	if a := s.made.Load(); a != nil {
		return a.Total()
	}
	return 0
}
