package rule

import "math"

// QuotaReader is a limiter that has a limit for each value of what its rule looks at.
type QuotaReader interface {
	Limiter

	// QuotaOf returns the state of the limit that such a call is held against, with Unknown if only the
	// limit is known; nil if there is none. It may be slow, but must not change what later calls get.
	QuotaOf(Call) *Quota
}

// UsedRatio returns which part of the capacity is used, more than 1 if more was taken than there was;
// false if that is not known, or there is none.
func (q *Quota) UsedRatio() (ratio float64, known bool) {
	if q.Capacity <= 0 || math.IsNaN(q.Used) {
		return 0, false
	}
	return q.Used / q.Capacity, true
}

// Left returns how many tokens are left of a window, a bucket or a balance; false if that is not known.
func (q *Quota) Left() (tokens float64, known bool) {
	switch {
	case q.Unknown, math.IsNaN(q.Used):
		return 0, false
	case q.Prepaid:
		return float64(q.Remaining), true
	}
	return max(0, q.Capacity-q.Used), q.Capacity > 0
}
