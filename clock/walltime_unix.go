//go:build unix

package clock

import (
	"syscall"
	"time"
)

// wallTime returns the time of day of the machine, in bubbles too.
func wallTime() Instant {
	var now syscall.Timeval
	if syscall.Gettimeofday(&now) != nil {
		return 0
	}
	return Instant(now.Nano()).Add(time.Millisecond) // it is adjusted now and then
}
