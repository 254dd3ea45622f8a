// Package usage measures what an instance uses of a limit that the fleet shares, and what it learns of what
// the others use. Its values are guarded by who has them.
package usage

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/fleet"
)

// Average is tokens per second of late: an exponential moving average.
type Average float64

// Add counts tokens that came since it was counted last, some time ago.
func (a *Average) Add(tokens int64, elapsed, memory time.Duration) {
	x := max(0, elapsed).Seconds() / memory.Seconds()
	weight := -math.Expm1(-x)
	switch {
	case x > 0 && x < 0.5:
		*a += Average((float64(tokens)/elapsed.Seconds() - float64(*a)) * weight)
	default: // after a quiet time, they have come just now
		*a += Average(float64(tokens)/memory.Seconds() - float64(*a)*weight)
	}
	*a = max(0, *a)
}

// PerSecond is the average; next to nothing is nothing.
func (a Average) PerSecond() float64 {
	if a < 1e-6 {
		return 0
	}
	return float64(a)
}

// RateMemory is the memory of averages of what passes: that of four tokens of an instance.
func RateMemory(terms *fleet.Terms, count int) time.Duration {
	return min(max(time.Second, Seconds(4*float64(max(1, count))/terms.PerSecond())), 5*time.Minute)
}

// Evened returns a rate that was measured over a memory, as far as its difference from an even share is
// not by chance: in an outage it would stay. All instances together pass the same.
func Evened(rate, even float64, memory time.Duration) float64 {
	return evened(rate, even, even/memory.Seconds()) // twice the variance of a rate, of tokens that come at random
}

// EvenedInWindow is Evened for a rate of a window from which tokens are leased. Beside chance, who asks first has
// more of it for some seconds.
func EvenedInWindow(rate, even float64) float64 {
	const unevenness = 0.15
	return evened(rate, even, even/portionMemory.Seconds()+unevenness*even*unevenness*even)
}

func evened(rate, even, chance float64) float64 {
	difference := rate - even
	return even + difference*max(0, 1-chance/max(chance, difference*difference))
}

// Seconds is a time of so many seconds, at most some hundred years.
func Seconds(s float64) time.Duration { return time.Duration(min(max(s, -1e9)*1e9, math.MaxInt64/2)) }
