package penstockprom

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/stat"
)

// What a counts holds, followed by one count for each bucket of the histogram:
// the response times up to its bound.
const (
	responseTime = iota // nanoseconds; this and the next may wrap around
	waitTime            // nanoseconds
	passed              // calls, as is what follows
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
	c[completed] = t.ResponseTimes.Count // as the histogram has it
	for _, bound := range buckets {
		c = append(c, t.ResponseTimes.CountUpTo(bound))
	}
	return c
}

// since returns what was counted after earlier counts, nil if there are none, of
// the same resource.
func (c counts) since(earlier counts) counts {
	delta := slices.Clone(c)
	for i, before := range earlier {
		if i >= passed && c[i] < before {
			return c // the engine had forgotten the resource and began anew
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
