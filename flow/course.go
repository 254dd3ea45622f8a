package flow

import (
	"math"
	"slices"
)

// course is how the ceiling of a window went, for a rule that warms up in steps
// shorter than its window: the ceiling of each of the window's buckets. What may
// pass in a window is the mean of the ceilings that it spans; by the last one
// alone a rising ceiling would be ahead of itself by half a window.
type course struct {
	ceilings []float64 // a ring by the number of the bucket; nil until it is needed
	bucket   int64     // the last one that was noted
	last     float64   // its ceiling
	mean     float64
}

// follow notes the ceiling of a bucket, the last one that was noted or a later
// one, and returns what may pass in the window that ends with it.
func (c *course) follow(t *Terms, bucket int64, ceiling float64) float64 {
	if !t.outlastsStep() {
		return ceiling
	}
	if c.ceilings == nil {
		c.ceilings = slices.Repeat([]float64{ceiling}, t.span)
	}
	for b := max(c.bucket, bucket-int64(t.span)) + 1; b < bucket; b++ {
		c.ceilings[c.slot(b)] = ceiling // nobody came
	}
	c.ceilings[c.slot(bucket)] = ceiling
	sum := 0.0
	for _, each := range c.ceilings {
		sum += each
	}
	c.bucket, c.last, c.mean = bucket, ceiling, sum/float64(t.span)
	return c.mean
}

// isLevel says whether the ceiling was the same in all of the window.
func (c *course) isLevel() bool { return math.Abs(c.mean-c.last) <= roundingError*c.last }

func (c *course) slot(bucket int64) int64 {
	span := int64(len(c.ceilings))
	return (bucket%span + span) % span // also before the epoch
}

// clone returns a copy to look ahead with.
func (c *course) clone() course {
	copied := *c
	copied.ceilings = slices.Clone(c.ceilings)
	return copied
}
