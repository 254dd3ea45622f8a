package main

import (
	"slices"
	"time"
)

// record counts requests and how they ended.
type record struct {
	all, refused int
	answered     []float64 // seconds that those took which were answered in time
}

func (r *record) add(took float64, refused, good bool) {
	r.all++
	if refused {
		r.refused++
	}
	if good {
		r.answered = append(r.answered, took)
	}
}

// outcome returns the figures of the requests that came in a span.
func (r *record) outcome(in time.Duration) outcome {
	o := outcome{Offered: float64(r.all) / in.Seconds(), Goodput: float64(len(r.answered)) / in.Seconds()}
	if r.all > 0 {
		o.Refused = float64(r.refused) / float64(r.all)
	}
	o.P99 = percentile(r.answered, 99)
	return o
}

// percentile returns the least value that so many in a hundred do not exceed; 0 without
// values.
func percentile(values []float64, percent int) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)*percent+99)/100-1]
}
