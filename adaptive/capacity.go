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

	mostHalvings = 10
)

// capacity is how many calls a service can do at once, as BBR estimates it: the highest
// throughput times the lowest mean response time, each of any bucket of the last ten
// seconds.
type capacity struct {
	ring [capacityBuckets]capacityBucket
	last int // the latest bucket of the ring

	open capacityBucket // not in the ring yet
	span time.Duration  // of the open bucket

	// halvings is how often the limit is halved: twice more for every bucket in which most
	// calls failed, once less for every other one.
	halvings int
}

// capacityBucket is a stretch of time. Those without calls are not kept.
type capacityBucket struct {
	until clock.Instant
	calls float64 // whose response times count
	took  float64 // ns; in the ring the mean, in the open bucket the sum
	good  float64 // calls that have not failed; in the ring in a second
}

// add counts what has ended in an interval until now.
func (c *capacity) add(now clock.Instant, i *interval) {
	c.open.calls += i.counted
	c.open.took += i.took
	c.open.good += i.good
	c.span += i.length
	if c.open.calls < bucketCalls && c.span < bucketTime {
		return
	}
	if b := c.open; b.calls > 0 {
		if c.halvings = max(0, c.halvings-1); b.good < b.calls/2 {
			c.halvings = min(c.halvings+3, mostHalvings)
		}
		c.last = (c.last + 1) % capacityBuckets
		c.ring[c.last] = capacityBucket{now, b.calls, b.took / b.calls, b.good / c.span.Seconds()}
	}
	c.open, c.span = capacityBucket{}, 0
}

// estimate returns the highest number of calls in a second, and the lowest mean response
// time in seconds; false if either is not known.
func (c *capacity) estimate(now clock.Instant) (rate, seconds float64, ok bool) {
	took := math.Inf(1)
	for i := range c.ring {
		if b := &c.ring[i]; b.calls > 0 && now.Sub(b.until) < capacityWindow {
			rate, took = max(rate, b.good), min(took, b.took)
		}
	}
	return rate, took / float64(time.Second), rate > 0
}

// limit returns how many calls may be under way at once: one more than the estimate, so
// that it can grow.
func (c *capacity) limit(now clock.Instant) (limit float64, ok bool) {
	rate, seconds, ok := c.estimate(now)
	return math.Floor(math.Ldexp(rate*seconds, -c.halvings)+0.5) + 1, ok
}
