package flow

import (
	"math"
	"slices"
)

// limitHistory is the limits of the buckets of a window, for a rule that warms up in
// steps shorter than its window. The limit of the whole window is their mean: the limit
// of the last bucket alone would be half a window ahead while the resource warms up.
type limitHistory struct {
	limits []float64 // of each bucket, in tokens per window; a ring; nil until it is needed
	bucket int64     // the last one that was added
	last   float64   // its limit
	mean   float64
}

// add adds the limit of a bucket, the last one that was added or a later one. It
// returns the limit of the window that ends with that bucket.
func (h *limitHistory) add(r *compiledRule, bucket int64, limit float64) float64 {
	if !r.outlastsStep() {
		return limit
	}
	if h.limits == nil {
		h.limits = slices.Repeat([]float64{limit}, int(r.span))
	}
	for b := max(h.bucket, bucket-int64(r.span)) + 1; b < bucket; b++ {
		h.limits[h.slot(b)] = limit // no call came in it
	}
	h.limits[h.slot(bucket)] = limit
	sum := 0.0
	for _, each := range h.limits {
		sum += each
	}
	h.bucket, h.last, h.mean = bucket, limit, sum/float64(r.span)
	return h.mean
}

// scale goes over from a limit of the rule, greater than 0, to another one.
func (h *limitHistory) scale(from, to float64) {
	for i := range h.limits {
		h.limits[i] = h.limits[i] / from * to
	}
	h.last, h.mean = h.last/from*to, h.mean/from*to
}

// isConstant says whether all buckets of the window have the same limit.
func (h *limitHistory) isConstant() bool { return math.Abs(h.mean-h.last) <= roundingError*h.last }

func (h *limitHistory) slot(bucket int64) int64 {
	span := int64(len(h.limits))
	return (bucket%span + span) % span // also before the epoch
}

// clone returns a copy that can be added to.
func (h *limitHistory) clone() limitHistory {
	copied := *h
	copied.limits = slices.Clone(h.limits)
	return copied
}
