// Package clock provides the time for Penstock.
//
// An engine gets a [Clock], reads it once per call and passes the [Instant] on; no
// other part of Penstock reads the time of day. The package has three clocks:
// [System] for production, [Coarse] for production where every nanosecond counts,
// and [Virtual] for tests and simulations.
package clock

import "time"

// Instant is a point in time: nanoseconds since the Unix epoch, as read from one
// clock. Instants of one clock never go back, whatever happens to the wall clock of
// the machine.
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

	// Until returns the time on this clock until the calendar time t, for instance
	// a context's deadline. It is negative if t has passed.
	Until(t time.Time) time.Duration

	// NewTimer returns a timer that fires once after d; at once if d is not
	// positive.
	NewTimer(d time.Duration) Timer
}

// TimerAt returns a timer that fires when the clock reaches at; at once if it has
// already. With a [Virtual] clock, or any other that has a method TimerAt, the timer is
// exact even if the clock is advanced during the call.
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
