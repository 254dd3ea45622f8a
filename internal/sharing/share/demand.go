package share

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// demand measures what calls ask for, and what passes. It is guarded by its owner.
type demand struct {
	asked  float64 // tokens per second, of late
	passed float64

	measuredAt  clock.Instant // when the rates were measured last, and the totals then
	askedTotal  int64
	passedTotal int64
	askedAt     clock.Instant // when it was found last that something was asked

	history history
}

// passedBy is the total of what had passed at an instant.
type passedBy struct {
	at    clock.Instant
	total int64
}

const (
	// minMeasured is the shortest time over which demand is measured.
	minMeasured = 500 * time.Millisecond

	// historyParts is into how many parts the horizon of the history is divided at most.
	historyParts = 32
)

// smoothing is the time constant of the demand for a limit with a window.
func smoothing(window time.Duration) time.Duration {
	return min(max(window/10, 3*time.Second), time.Minute)
}

// measure updates the rates at now, from the totals so far.
func (d *demand) measure(now clock.Instant, asked, passed int64, window time.Duration) {
	elapsed := now.Sub(d.measuredAt)
	if elapsed < minMeasured {
		return
	}
	seconds := elapsed.Seconds()
	weight := -math.Expm1(-seconds / smoothing(window).Seconds())
	d.asked = follow(d.asked, float64(asked-d.askedTotal), seconds, weight)
	d.passed = follow(d.passed, float64(passed-d.passedTotal), seconds, weight)
	if asked != d.askedTotal {
		d.askedAt = now
	}
	d.measuredAt, d.askedTotal, d.passedTotal = now, asked, passed
}

// follow returns a rate after n tokens in some seconds. It goes over to what is there now
// when that is not explained by chance: up at once, down in a few steps.
func follow(rate, n, seconds, weight float64) float64 {
	expected := rate * seconds
	chance := 2 * math.Sqrt(expected+1)
	switch {
	case n > expected+chance:
		return n / seconds
	case n < expected-chance:
		weight = max(weight, 0.7)
	}
	return max(0, rate+(n/seconds-rate)*weight)
}

// history is totals of what had passed, by time. The first is not within the horizon.
type history []passedBy

// record adds a total of what has passed to the history of a horizon.
func (h *history) record(now clock.Instant, passed int64, horizon time.Duration) {
	all := *h
	if n := len(all); n >= 2 && now.Sub(all[n-2].at) < horizon/historyParts {
		all[n-1] = passedBy{now, passed} // the two before it are close enough
	} else {
		all = append(all, passedBy{now, passed})
	}
	old := 0
	for old+1 < len(all) && now.Sub(all[old+1].at) >= horizon {
		old++
	}
	*h = slices.Delete(all, 0, old)
}

// within returns the most that can have passed within the horizon, by the history.
func (h history) within(passed int64) int64 {
	if len(h) == 0 {
		return passed
	}
	return max(0, passed-h[0].total)
}
