package clock

import (
	"math"
	"sync/atomic"
	"time"
)

// counterClock is the system's clock, read by means of a counter of the processor. To ask the system
// takes 24 ns on Linux, mostly since the processor first completes all that goes before; to read the
// counter takes 9 ns, and other work goes on. So the system is asked once in a period, and in between
// the time is right within a microsecond.
//
// No call waits for another one: each that finds the line at its end makes the next, and the first
// one counts; the others go by that. That is one small allocation in a millisecond with calls.
//
// For two goroutines that tell each other the time it may go back by a fraction of a microsecond, since
// a processor may read its counter before instructions that stand before that.
type counterClock struct {
	system
	line atomic.Pointer[line]
}

// skew is how many ticks a processor may read its counter too early: less than two microseconds.
const skew = 1 << 12

// newCounterClock returns a clock that reads the counter; nil if the counter is not fit for that, or
// if the time of the system stands still, as within testing/synctest.
func newCounterClock(s system) *counterClock {
	const (
		calibration = 50 * time.Microsecond
		standstill  = 1 << 14 // ticks, some microseconds
	)
	first := s.read()
	second := first
	for second.at.Sub(first.at) < calibration {
		if second = s.read(); second.at == first.at && second.ticks-first.ticks > standstill {
			return nil
		}
	}
	if !first.hasSpeedTo(second) {
		return nil
	}
	c := &counterClock{system: s}
	c.line.Store(newLine(first, second))
	return c
}

// Now reads the counter.
func (c *counterClock) Now() Instant {
	l := c.line.Load()
	if passed := ticks() - l.ticks; passed < l.length {
		return l.after(passed)
	}
	return c.renew(l)
}

// NewTimer makes a timer.
func (c *counterClock) NewTimer(d time.Duration) Timer {
	c.followIntoBubble()
	return c.system.NewTimer(d)
}

// AfterFunc calls a function in a goroutine of its own after d.
func (c *counterClock) AfterFunc(d time.Duration, do func()) {
	c.followIntoBubble()
	c.system.AfterFunc(d, do)
}

// followIntoBubble ends the period of a line that was begun outside of the bubble that asks: there hours pass in
// a millisecond, in which who waits until an instant would wait again and again.
func (c *counterClock) followIntoBubble() {
	if l := c.line.Load(); l.length > 0 && c.isFake() {
		c.renew(l)
	}
}

// renew is Now outside of the period of a line.
func (c *counterClock) renew(l *line) Instant {
	for {
		if l.ticks-ticks() < skew {
			return l.at // another processor has just begun the line
		}
		next := l.next(c.read())
		if c.line.CompareAndSwap(l, next) {
			return next.at
		}
		// Another goroutine was quicker. It may have read the clock before this call began: only what
		// the counter says now is not older than the call.
		l = c.line.Load()
		if passed := ticks() - l.ticks; passed < l.length {
			return l.after(passed)
		}
	}
}

// read reads the counter and the clock of the system at about the same time: it takes the closest of
// a few attempts, since the thread may be interrupted in between.
func (s *system) read() (closest reading) {
	const (
		attempts = 3
		near     = 1 << 10 // ticks, half a microsecond
	)
	apart := uint64(math.MaxUint64)
	for range attempts {
		before := ticks()
		at := s.Now()
		if took := ticks() - before; took < apart {
			apart, closest = took, reading{ticks: before + took/2, at: at}
		}
		if apart <= near {
			break
		}
	}
	closest.fake = s.isFake()
	return closest
}
