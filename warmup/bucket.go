package warmup

// Bucket is how cold a resource is: the stored tokens of the mother bucket, and
// what has passed since they were last counted. It is not safe for concurrent
// use.
type Bucket struct {
	stored  float64
	step    int64 // the step that stored was last brought up to
	current int64 // tokens passed in it
}

// NewBucket returns the bucket of a stone-cold resource.
func NewBucket(c Curve, step int64) Bucket {
	return Bucket{stored: c.maximum, step: step}
}

// Sync brings the bucket up to a step. It is called before the first decision
// of that step; for a step that is not later than the last it does nothing.
//
//	stored < warning                                   → stored += Δ·T
//	stored > warning and passed < floor(T·step / c)    → stored += Δ·T
//	stored = max(0, min(stored, max) − passed)
//
// passed is what passed in the step just before. Where not even one token
// passes in a step at the cold rate, a single step says nothing, and whatever
// passed since the last call is drained: otherwise a limit below 1 would never
// get warm.
func (b *Bucket) Sync(c Curve, step int64) {
	if step <= b.step {
		return
	}
	passed := b.current
	if step > b.step+1 && c.coldStep >= 1 {
		passed = 0
	}
	if b.stored < c.warning || b.stored > c.warning && float64(passed) < c.coldStep {
		b.stored += float64(step-b.step) * c.step.Seconds() * c.limit
	}
	b.stored = max(0, min(b.stored, c.maximum)-float64(passed))
	b.current, b.step = 0, step
}

// Pass counts n tokens that passed in a step, which is the one that Sync was
// last called for; a negative n takes back what was counted. What passed in an
// earlier step is drained already and stays so.
func (b *Bucket) Pass(step, n int64) {
	if step == b.step {
		b.current += n
	}
}

// Ceiling returns the tokens per second that the bucket allows, on the curve it
// was last brought up to date with.
func (b *Bucket) Ceiling(c Curve) float64 { return c.Ceiling(b.stored) }

// Rescale moves the bucket from one curve to another and keeps its share of
// stored tokens: a resource that was half warm stays half warm.
func (b *Bucket) Rescale(from, to Curve) {
	if from.maximum > 0 {
		b.stored *= to.maximum / from.maximum
	} else {
		b.stored = to.maximum
	}
	if from.step != to.step {
		b.step = b.step * int64(from.step) / int64(to.step)
	}
}
