// Package clock provides the time that Penstock runs on.
//
// Nothing in Penstock reads the time of day by itself. An engine is given a [Clock], reads
// it once per call and passes the [Instant] down. The package has three clocks: [System]
// for production, [Coarse] for production where every nanosecond counts, and [Virtual] for
// tests and simulations.
package clock

import "time"

// Instant is a point in time: nanoseconds since the Unix epoch, as the clock that gave it
// counts them. Instants of one clock never go back, whatever happens to the wall clock of
// the machine: what is measured goes by them. What people mean by the calendar goes by
// [Clock.Until] and [TimeOf], which follow the wall clock.
type Instant int64

// Add returns the instant d later (earlier if d is negative).
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time that passed from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// Time returns the instant as a calendar time in UTC.
func (i Instant) Time() time.Time { return time.Unix(0, int64(i)).UTC() }

// A Clock returns the time and makes timers. Implementations must be safe for
// concurrent use.
type Clock interface {
	// Now returns the present instant, which is not before the Unix epoch. It
	// never goes back.
	Now() Instant

	// Until returns the time until the calendar time t, such as the deadline of a context,
	// as the wall clock tells it at present; if t has a monotonic reading, by that. It is
	// negative when t has passed.
	Until(t time.Time) time.Duration

	// NewTimer returns a timer that fires once after d; at once if d is not
	// positive.
	NewTimer(d time.Duration) Timer
}

// TimeOf returns the calendar time of an instant of the clock, as the wall clock tells it at present:
// for people to read. [Instant.Time] goes by the wall clock as it was when the clock was made. The two
// differ once the wall clock was set, or a suspended machine has resumed, and then by whole seconds:
// less than half of one is left out.
func TimeOf(c Clock, at Instant) time.Time {
	now := c.Now().Time()
	apart := -c.Until(now) // how much later it is by the wall clock
	return at.Time().Add(apart.Round(time.Second))
}

// TimerAt returns a timer of the clock that fires at an instant, or at once if that has
// come. With a [Virtual] clock, or another one that has a method TimerAt, it does not matter
// whether the clock is moved before the timer is armed.
func TimerAt(c Clock, at Instant) Timer {
	if exact, ok := c.(interface{ TimerAt(at Instant) Timer }); ok {
		return exact.TimerAt(at)
	}
	return c.NewTimer(at.Sub(c.Now()))
}

// A Timer sends once on its channel. It is for use by one goroutine.
type Timer interface {
	// C returns the channel that receives when the timer fires.
	C() <-chan time.Time

	// Reset makes the timer fire after d from now. It drops a value of an earlier
	// firing that is still in the channel.
	Reset(d time.Duration)

	// Stop stops the timer. The channel receives nothing afterwards.
	Stop()
}
