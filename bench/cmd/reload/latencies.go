package main

import (
	"slices"
	"time"
)

// latencies are the times that calls took, each to the nanosecond. They take little
// memory, so that the garbage collector works as it would without them: most calls
// are short, and those are only counted.
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

// quantile returns the time that so large a part of the calls did not exceed; there is
// at least one.
func (l *latencies) quantile(part float64) time.Duration {
	rank := int(part * float64(l.count-1))
	for took, count := range l.short {
		if rank < count {
			return time.Duration(took)
		}
		rank -= count
	}
	slices.Sort(l.long)
	return l.long[rank]
}
