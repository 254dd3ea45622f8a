package adaptive

import (
	"math"
	"time"
)

const (
	// Each update makes earlier traffic count less by this factor.
	trafficRetained = 0.75

	// The threshold is raised when the share of the calls at or above it that meets the
	// limit is by so much higher than expected, see headroom, and lowered when it is lower by
	// this factor. In between it stays.
	tooMany = 0.08
	tooFew  = 0.33
	release = 1.1 // is the factor by which more pass then, at each update

	leastShare = 0.01 // of the arrivals passes always

	// So long after it was needed last the threshold is no longer kept.
	restAfter = 10 * time.Second
)

// headroom returns how many times as many calls as pass are let as far as a limit. Calls
// come at random, so with fewer the limit would not be made full use of; the more so the
// lower it is.
func headroom(limit float64) float64 { return 1 + 1/math.Sqrt(limit) }

// traffic is what has come of late, later calls counting more.
type traffic struct {
	seconds  float64
	admitted float64
	good     float64
	refused  float64
	unsorted float64 // refused by the limit before anybody looked at their callers
	edgeFull float64 // refused by the limit, at or above the threshold
	counted  float64 // calls that ended and whose response times count
	took     float64 // the sum of these response times, ns
	extra    float64 // tokens of calls that passed, beside one of each
}

func (t *traffic) add(i *interval, before, after *totals) {
	t.seconds = t.seconds*trafficRetained + i.length.Seconds()
	t.admitted = t.admitted*trafficRetained + i.admitted
	t.good = t.good*trafficRetained + i.good
	t.refused = t.refused*trafficRetained + i.refused
	t.unsorted = t.unsorted*trafficRetained + float64(after.refusedUnsorted-before.refusedUnsorted)
	t.edgeFull = t.edgeFull*trafficRetained + float64(after.edgeFull-before.edgeFull)
	t.counted = t.counted*trafficRetained + i.counted
	t.took = t.took*trafficRetained + i.took
	t.extra = t.extra*trafficRetained + float64(after.extra-before.extra)
}

// mean returns how long calls take, in seconds.
func (t *traffic) mean() float64 { return t.took / max(1, t.counted) / float64(time.Second) }

// arrivalRate returns how many calls came in a second.
func (t *traffic) arrivalRate() float64 { return (t.admitted + t.refused) / t.seconds }

// gateShare returns the share of the arrivals that is to pass so that not too many of them
// meet the limit, by the share that was to pass up to now.
func (t *traffic) gateShare(share float64, limit uint32) float64 {
	if limit == noLimit {
		return min(share*release, 1)
	}
	full := share*t.unsorted + t.edgeFull
	margin := headroom(float64(limit))
	expected := 1 - 1/margin
	switch demand := t.admitted + full; {
	case full > (expected+tooMany)*demand:
		share = max(share/2, margin*t.admitted/(t.admitted+t.refused))
	case full < tooFew*expected*demand || demand == 0:
		share *= release
	}
	return max(leastShare, min(share, 1))
}
