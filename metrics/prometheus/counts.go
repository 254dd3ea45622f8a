package penstockprom

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/stat"
)

// The indices of counts. After these, counts has one entry for each bucket of the
// histogram: the number of response times up to its bound.
const (
	responseTime = iota // nanoseconds; may wrap around
	waitTime            // nanoseconds; may wrap around
	passed              // calls, as are the following
	blocked
	failed
	waited
	completed
	firstBucket
)

// counts are the counters of a resource.
type counts []uint64

func countsOf(t *stat.Totals, buckets []time.Duration) counts {
	c := make(counts, firstBucket, firstBucket+len(buckets))
	c[responseTime], c[waitTime] = uint64(t.ResponseTime), uint64(t.WaitTime)
	c[passed], c[blocked], c[failed], c[waited] = t.Passed, t.Blocked, t.Failed, t.Waited
	c[completed] = t.ResponseTimes.Count // agrees with the histogram
	for _, bound := range buckets {
		c = append(c, t.ResponseTimes.CountUpTo(bound))
	}
	return c
}

// since returns the increase since earlier counts of the same resource, nil if there
// are none.
func (c counts) since(earlier counts) counts {
	delta := slices.Clone(c)
	for i, before := range earlier {
		if i >= passed && c[i] < before {
			return c // the engine had evicted the resource, and the counters restarted
		}
		delta[i] -= before
	}
	return delta
}

func (c counts) add(more counts) {
	for i := range more {
		c[i] += more[i]
	}
}
