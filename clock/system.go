package clock

import "time"

// System returns the clock of the machine: monotonic time, anchored to the
// wall clock once, when System is called. Seconds of its instants therefore
// fall on calendar seconds, and a wall clock that is stepped later, by NTP or
// by hand, changes nothing.
func System() Clock {
	now := time.Now()
	return &system{anchor: now, epoch: Instant(now.UnixNano())}
}

type system struct {
	anchor time.Time // carries a monotonic reading
	epoch  Instant   // the anchor as an instant
}

// Now relies on time.Since using the monotonic reading of the anchor: one read
// of one hardware clock, half the price of time.Now.
func (s *system) Now() Instant { return s.epoch.Add(time.Since(s.anchor)) }

func (s *system) Until(t time.Time) time.Duration { return time.Until(t) }

func (s *system) NewTimer(d time.Duration) Timer { return systemTimer{time.NewTimer(d)} }

type systemTimer struct{ timer *time.Timer }

func (t systemTimer) C() <-chan time.Time   { return t.timer.C }
func (t systemTimer) Reset(d time.Duration) { t.timer.Reset(d) }
func (t systemTimer) Stop()                 { t.timer.Stop() }
