package main

import (
	"slices"
	"time"
)

// counts is what all instances together let pass and refused, as their calls tell.
type counts struct {
	passed  []time.Duration // since the start, in their order
	calls   []call
	outages int64 // that instances have seen
	lost    int64 // batches without an answer
}

func (c *counts) add(s summary, calls []call) {
	c.calls = append(c.calls, calls...)
	c.outages += s.Outages
	c.lost += s.Lost
	for _, one := range calls {
		if one.passed {
			c.passed = append(c.passed, one.at)
		}
	}
}

// sort has to be called when all instances have been added.
func (c *counts) sort() { slices.Sort(c.passed) }

// between returns how many calls passed from an instant up to, but not including, another.
func (c *counts) between(from, to time.Duration) int {
	first, _ := slices.BinarySearch(c.passed, from)
	last, _ := slices.BinarySearch(c.passed, to)
	return max(0, last-first)
}

// worst returns the most calls that passed in any second that begins at or after an instant.
func (c *counts) worst(from time.Duration) int {
	first, _ := slices.BinarySearch(c.passed, from)
	most := 0
	for last := first; last < len(c.passed); last++ {
		for c.passed[last]-c.passed[first] >= time.Second {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

// aligned returns the most calls that passed in a second that begins with a tenth of a second
// of a clock, which shows the given time at the start.
func (c *counts) aligned(shows time.Time) int {
	if len(c.passed) == 0 {
		return 0
	}
	const bucket = 100 * time.Millisecond
	most := 0
	begin := shows.Truncate(bucket).Sub(shows) - time.Second
	for ; begin <= c.passed[len(c.passed)-1]; begin += bucket {
		most = max(most, c.between(begin, begin+time.Second))
	}
	return most
}

// refused returns the fraction of the calls since an instant that did not pass.
func (c *counts) refused(from time.Duration) float64 {
	all, refused := 0, 0
	for _, one := range c.calls {
		if one.at < from {
			continue
		}
		all++
		if !one.passed {
			refused++
		}
	}
	return float64(refused) / float64(max(1, all))
}

// latencies returns how long a call took from an instant to another: the median, the 99th
// percentile and the longest.
func (c *counts) latencies(from, to time.Duration) latencies {
	var took []time.Duration
	for _, one := range c.calls {
		if one.at >= from && one.at < to {
			took = append(took, one.took)
		}
	}
	if len(took) == 0 {
		return latencies{}
	}
	slices.Sort(took)
	at := func(percent int) time.Duration { return took[(len(took)*percent+99)/100-1] }
	return latencies{median: at(50), p99: at(99), longest: took[len(took)-1]}
}

type latencies struct{ median, p99, longest time.Duration }
