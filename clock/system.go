package clock

import "time"

// System returns the clock of the machine: monotonic time that is set to the wall
// clock once, when System is called. Its seconds therefore coincide with calendar
// seconds, and later steps of the wall clock, by NTP or by hand, have no effect.
//
// On Linux and amd64, if the kernel keeps time by the processor's time-stamp counter, Now reads that
// counter and asks the kernel once in a millisecond: that takes 9 ns instead of 24, and the time is
// right within a microsecond. A goroutine that another one tells of an event may then read a time that
// is a fraction of a microsecond before it. Making such a clock takes a tenth of a millisecond.
//
// Within testing/synctest the clock is that of the bubble in which System was called. One that was made
// outside goes on in a bubble as time passes there, from the first timer it makes there or a millisecond after
// the bubble was entered, and afterwards from where it was. So does one that was made in a bubble and is used outside, or in
// another one.
func System() Clock {
	s := newSystem()
	if hasCounter() {
		if c := newCounterClock(s); c != nil {
			return c
		}
	}
	return &s
}

type system struct {
	anchor  time.Time // carries a monotonic reading
	epoch   Instant   // anchor as an instant
	bubbles *bubbles
}

func newSystem() system {
	now := time.Now()
	epoch := Instant(now.UnixNano())
	return system{anchor: now, epoch: epoch, bubbles: madeNow(epoch)}
}

// Now uses time.Since, which reads only the monotonic clock and costs half as much
// as time.Now.
func (s *system) Now() Instant {
	passed := time.Since(s.anchor)
	if passed < 0 || s.bubbles.entered.Load() {
		return s.bubbles.now(s.epoch, passed)
	}
	return s.epoch.Add(passed)
}

// isFake says whether the time is that of a bubble in which the clock was not made: years before that.
func (s *system) isFake() bool { return time.Since(s.anchor) < 0 }

func (s *system) Until(t time.Time) time.Duration { return time.Until(t) }

func (s *system) NewTimer(d time.Duration) Timer { return systemTimer{time.NewTimer(d)} }

// AfterFunc calls a function in a goroutine of its own after d. The engine looks for this method.
func (s *system) AfterFunc(d time.Duration, do func()) { time.AfterFunc(d, do) }

type systemTimer struct{ timer *time.Timer }

func (t systemTimer) C() <-chan time.Time   { return t.timer.C }
func (t systemTimer) Reset(d time.Duration) { t.timer.Reset(d) }
func (t systemTimer) Stop()                 { t.timer.Stop() }
