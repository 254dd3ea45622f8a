package adaptive

import "time"

const (
	// Each update makes earlier traffic count less by this factor.
	trafficRetained = 0.75

	// Of the calls at or above the threshold, so many more than pass are let as far as the
	// limit, so that the limit is always made use of.
	headroom = 1.05

	// The threshold is raised when more than this share of them meets the limit, and lowered
	// when less than that does. In between it stays.
	tooMany = 0.10
	tooFew  = 0.01
	release = 1.1 // is the factor by which more pass then, at each update

	leastShare = 0.01 // of the arrivals passes always

	// So long after it was needed last the threshold is no longer kept.
	restAfter = 10 * time.Second
)

// traffic is what has come of late, later calls counting more.
type traffic struct {
	seconds  float64
	admitted float64
	ended    float64
	refused  float64
	unsorted float64 // refused by the limit before anybody looked at their callers
	edgeFull float64 // refused by the limit, at or above the threshold
}

func (t *traffic) add(i *interval, before, after *totals) {
	t.seconds = t.seconds*trafficRetained + i.length.Seconds()
	t.admitted = t.admitted*trafficRetained + i.admitted
	t.ended = t.ended*trafficRetained + i.ended
	t.refused = t.refused*trafficRetained + i.refused
	t.unsorted = t.unsorted*trafficRetained + float64(after.refusedUnsorted-before.refusedUnsorted)
	t.edgeFull = t.edgeFull*trafficRetained + float64(after.edgeFull-before.edgeFull)
}

// arrivalRate returns how many calls came in a second.
func (t *traffic) arrivalRate() float64 { return (t.admitted + t.refused) / t.seconds }

// gateShare returns the share of the arrivals that is to pass so that few of them meet
// the limit, by the share that was to pass up to now.
func (t *traffic) gateShare(share float64) float64 {
	full := share*t.unsorted + t.edgeFull
	switch demand := t.admitted + full; {
	case full > tooMany*demand:
		wanted := headroom * t.admitted / (t.admitted + t.refused)
		share = max(share/2, wanted)
	case full < tooFew*demand || demand == 0:
		share *= release
	}
	return max(leastShare, min(share, 1))
}
