package adaptive

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

const (
	capacityWindow  = 10 * time.Second
	capacityBuckets = int(capacityWindow / updateEvery)

	// A bucket has so many calls, or is that long, so that its rate and its mean response
	// time are not mere chance.
	bucketCalls = 32
	bucketTime  = time.Second
)

// capacity is how many calls a service can do at once, as BBR estimates it: the highest
// throughput times the lowest mean response time, each of any bucket of the last ten
// seconds.
type capacity struct {
	ring [capacityBuckets]capacityBucket
	last int // the latest bucket of the ring

	open capacityBucket // not in the ring yet
	span time.Duration  // of the open bucket
}

// capacityBucket is a stretch of time. Those without calls are not kept.
type capacityBucket struct {
	until clock.Instant
	calls float64
	took  float64 // ns; in the ring the mean, in the open bucket the sum
	rate  float64 // calls in a second; in the ring only
}

// add counts what has ended in an interval until now.
func (c *capacity) add(now clock.Instant, i *interval) {
	c.open.calls += i.counted
	c.open.took += i.took
	c.span += i.length
	if c.open.calls < bucketCalls && c.span < bucketTime {
		return
	}
	if b := c.open; b.calls > 0 {
		c.last = (c.last + 1) % capacityBuckets
		c.ring[c.last] = capacityBucket{now, b.calls, b.took / b.calls, b.calls / c.span.Seconds()}
	}
	c.open, c.span = capacityBucket{}, 0
}

// estimate returns the number of calls at once, and the lowest mean response time in
// seconds; false if nothing is known.
func (c *capacity) estimate(now clock.Instant) (calls, seconds float64, ok bool) {
	rate, took := 0.0, math.Inf(1)
	for i := range c.ring {
		if b := &c.ring[i]; b.calls > 0 && now.Sub(b.until) < capacityWindow {
			rate, took = max(rate, b.rate), min(took, b.took)
		}
	}
	seconds = took / float64(time.Second)
	return rate * seconds, seconds, rate > 0
}
