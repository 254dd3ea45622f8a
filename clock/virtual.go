package clock

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// Virtual is a clock that changes only when it is advanced. Timers fire, in the order
// of their times, while it is advanced past them.
//
// Advance does not wait for goroutines that timers have woken. Where that matters,
// advance the clock in small steps, or use testing/synctest.
type Virtual struct {
	mu     sync.Mutex
	now    Instant
	timers map[*virtualTimer]struct{} // that will fire
}

// NewVirtual returns a clock at start. The zero Time stands for the Unix epoch. It
// panics if start is not within the range of [Instant]: before 1970 or after 2262.
func NewVirtual(start time.Time) *Virtual {
	if start.IsZero() {
		start = time.Unix(0, 0)
	}
	if start.Before(time.Unix(0, 0)) || start.After(time.Unix(0, math.MaxInt64)) {
		panic(fmt.Sprintf("clock: NewVirtual at %v: must be from 1970 to 2262, or the zero Time for the Unix epoch", start))
	}
	return &Virtual{now: Instant(start.UnixNano()), timers: make(map[*virtualTimer]struct{})}
}

// Now returns the instant of the clock.
func (v *Virtual) Now() Instant {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// Until returns the time from the instant of the clock to t.
func (v *Virtual) Until(t time.Time) time.Duration { return t.Sub(v.Now().Time()) }

// Advance advances the clock by d and fires the timers that are due. It panics if d
// is negative.
func (v *Virtual) Advance(d time.Duration) {
	if d < 0 {
		panic("clock: Advance by a negative duration")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	end := v.now.Add(d)
	for {
		next := v.earliest(end)
		if next == nil {
			break
		}
		v.now = max(v.now, next.at)
		v.fire(next)
	}
	v.now = end
}

// Timers returns how many timers will fire. In tests it shows how many goroutines
// wait for this clock.
func (v *Virtual) Timers() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.timers)
}

// NewTimer returns a timer that fires when the clock has been advanced by d.
func (v *Virtual) NewTimer(d time.Duration) Timer {
	t := &virtualTimer{clock: v, fired: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

// TimerAt returns a timer that fires when the clock reaches the instant; at once if
// it has already.
func (v *Virtual) TimerAt(at Instant) Timer {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := &virtualTimer{clock: v, fired: make(chan time.Time, 1), at: at}
	v.timers[t] = struct{}{}
	if at <= v.now {
		v.fire(t)
	}
	return t
}

// earliest returns the next timer to fire, nil if none is due by end.
func (v *Virtual) earliest(end Instant) *virtualTimer {
	var first *virtualTimer
	for t := range v.timers {
		if t.at <= end && (first == nil || t.at < first.at) {
			first = t
		}
	}
	return first
}

func (v *Virtual) fire(t *virtualTimer) {
	delete(v.timers, t)
	t.fired <- v.now.Time()
}

type virtualTimer struct {
	clock *Virtual
	fired chan time.Time
	at    Instant // guarded by clock.mu
}

func (t *virtualTimer) C() <-chan time.Time { return t.fired }

func (t *virtualTimer) Reset(d time.Duration) {
	t.Stop()
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	t.at = t.clock.now.Add(d)
	if d > 0 && t.at < t.clock.now {
		t.at = math.MaxInt64 // the sum overflows
	}
	t.clock.timers[t] = struct{}{}
	if d <= 0 {
		t.clock.fire(t)
	}
}

func (t *virtualTimer) Stop() {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	delete(t.clock.timers, t)
	select {
	case <-t.fired:
	default:
	}
}
