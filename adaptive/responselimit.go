package adaptive

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

const (
	// The limit moves by a part of the way with each update: by the less, the fewer calls
	// ended and the longer it takes until its last change can be seen.
	followCalls = 40
	followTimes = 2 // response times
	followMost  = 4 // is the factor by which one mean moves the limit at the most

	soonest = 10 * time.Millisecond // after an update, while there is no limit
)

// responseLimit finds how many calls may be under way so that their mean response time is a
// threshold. At first that is the rate at which calls end times the threshold, by Little's
// law. From then on the limit is moved by the ratio of the threshold to the mean.
type responseLimit struct {
	limit    float64       // calls under way; +Inf while none is needed
	draining bool          // more are under way, as more came before there was a limit
	settled  clock.Instant // from then on, calls end that began under the limit
	needed   clock.Instant // when calls met the limit last, or took too long
}

// update moves the limit by what has happened since the last update, and in the last second.
func (r *responseLimit) update(now clock.Instant, threshold time.Duration, second *responseTimes, i *interval) {
	switch {
	case threshold == 0:
		r.limit = math.Inf(1)
	case i.length == 0:
	case math.IsInf(r.limit, 1):
		if mostAtOnce := endingRate(now, second, i) * threshold.Seconds(); exceeds(now, threshold, second, i, mostAtOnce) {
			r.limit, r.draining, r.needed = max(1, mostAtOnce), true, now
		}
	case r.draining && i.underWay > r.limit:
		r.limit, r.needed = max(1, endingRate(now, second, i)*threshold.Seconds()), now
	case r.draining:
		r.draining, r.settled = false, now.Add(threshold)
	case now >= r.settled && i.counted > 0:
		r.follow(now, threshold, i)
	}
	if i.refused > 0 {
		r.needed = now
	}
	if now.Sub(r.needed) > restAfter {
		r.limit = math.Inf(1)
	}
}

// next returns when the limit should be looked at next. As long as there is none, calls
// under way can become many soon.
func (r *responseLimit) next(threshold time.Duration) time.Duration {
	if threshold == 0 || !math.IsInf(r.limit, 1) {
		return updateEvery
	}
	return max(soonest, min(threshold/2, updateEvery))
}

// exceeds says whether calls have taken longer than the threshold in the last second. It
// says so early if they have taken more than half of it, and those under way will take more
// than twice as long at the rate at which calls end.
func exceeds(now clock.Instant, threshold time.Duration, second *responseTimes, i *interval, mostAtOnce float64) bool {
	mean := second.mean(now)
	if mean > threshold {
		return true
	}
	if i.counted >= responseTimesLeast {
		mean = time.Duration(i.took / i.counted)
	}
	return mean > threshold/2 && i.underWay > 2*mostAtOnce
}

// endingRate returns how many calls end in a second.
func endingRate(now clock.Instant, second *responseTimes, i *interval) float64 {
	rate := second.rate(now)
	if i.counted >= updateArrivals {
		rate = max(rate, i.counted/i.length.Seconds())
	}
	return rate
}

// follow moves the limit by the mean of an interval. It is raised only if calls met it.
func (r *responseLimit) follow(now clock.Instant, threshold time.Duration, i *interval) {
	mean := i.took / i.counted
	ratio := max(1./followMost, min(float64(threshold)/mean, followMost))
	if ratio < 1 {
		r.needed = now
		r.limit = min(r.limit, 2*i.took/float64(i.length)+1) // of which twice as many were under way
	} else if i.refused == 0 {
		return
	}
	weight := 1 / (1 + followTimes*mean/float64(i.length) + followCalls/i.counted)
	r.limit = max(1, min(r.limit*math.Pow(ratio, weight), maxLimit))
}
