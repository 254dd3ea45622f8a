package main

import (
	"slices"
	"time"
)

// latencies are the times that calls took, each to the nanosecond. Most calls are
// short, and those are only counted: it takes little memory, so that measuring does not
// disturb the garbage collector.
type latencies struct {
	short [4096]int // by nanoseconds
	long  []time.Duration
	count int
}

func (l *latencies) add(took time.Duration) {
	l.count++
	if took < time.Duration(len(l.short)) {
		l.short[took]++
	} else {
		l.long = append(l.long, took)
	}
}

// quantile returns the time that a share of the calls, from 0 to 1, did not exceed.
// There must be at least one call.
func (l *latencies) quantile(share float64) time.Duration {
	rank := int(share * float64(l.count-1))
	for took, count := range l.short {
		if rank < count {
			return time.Duration(took)
		}
		rank -= count
	}
	slices.Sort(l.long)
	return l.long[rank]
}
