package flow

// course is how the ceiling of a window went, for a rule that warms up in steps
// shorter than its window: the ceiling of each of the window's buckets. What may
// pass in a window is the mean of the ceilings that it spans; by the last one
// alone a rising ceiling would be ahead of itself by half a window.
type course struct {
	ceilings []float64 // a ring by the number of the bucket; nil until it is needed
	last     float64
	mean     float64
}

// follow notes the ceiling of a bucket and returns what may pass in the window
// that ends with it.
func (c *course) follow(t *Terms, bucket int64, ceiling float64) float64 {
	if !t.warmsUp() || t.rule.WarmUp.Step >= t.spanLength() {
		return ceiling
	}
	if len(c.ceilings) != t.span {
		c.ceilings = make([]float64, t.span)
		for i := range c.ceilings {
			c.ceilings[i] = ceiling
		}
	}
	c.ceilings[bucket%int64(t.span)] = ceiling
	sum := 0.0
	for _, each := range c.ceilings {
		sum += each
	}
	c.last, c.mean = ceiling, sum/float64(t.span)
	return c.mean
}

// atLast returns how many tokens would have passed in the window at the last
// ceiling, of those that passed at their mean.
func (c *course) atLast(passed int64) int64 {
	if c.mean == 0 {
		return passed
	}
	return int64(float64(passed) * c.last / c.mean)
}
