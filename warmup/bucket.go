package warmup

// Bucket is how cold a resource is: the stored tokens of the mother bucket, and
// what has passed since they were last counted. It is not safe for concurrent
// use.
type Bucket struct {
	stored  float64
	step    int64   // the step that stored was last brought up to
	current int64   // tokens passed in it
	ahead   float64 // tokens by which the ceiling looks ahead, see SyncJudged
}

// NewBucket returns the bucket of a stone-cold resource.
func NewBucket(c Curve, step int64) Bucket {
	return Bucket{stored: c.maximum, step: step}
}

// Sync brings the bucket up to a step. It is called before the first decision
// of that step; for a step that is not later than the last it does nothing.
//
//	stored < warning                                   → stored += Δ·T
//	stored > warning and recent < floor(T·step / c)    → stored += Δ·T
//	stored = max(0, min(stored, max) − passed)
//
// passed is what passed since the last call and recent as much of it as a step
// has of that time; in every second of a steady load both are what passed in the
// second before. Where not even one token passes in a step at the cold rate, a
// single step says nothing: see syncSmall.
func (b *Bucket) Sync(c Curve, step int64) {
	if step <= b.step {
		return
	}
	elapsed, passed := float64(step-b.step), float64(b.current)
	switch {
	case c.cold < 1:
		b.syncSmall(c, c.refill(elapsed))
	case elapsed > 1: // what passed is older than what is refilled
		b.stored = max(0, b.stored-passed)
		b.sync(c, c.refill(elapsed), 0, passed/elapsed)
	default:
		b.sync(c, c.refill(elapsed), passed, passed)
	}
	b.current, b.step, b.ahead = 0, step, 0
}

// SyncJudged is Sync for a curve that is judged over a window: recent is what
// passed in the window that ended when the step began. If that is longer than
// a step, so much of it is drained as a step has of the window, and the ceiling
// is that of the middle of the step. If it is not, what passed in the step just
// before counts, and nothing else.
func (b *Bucket) SyncJudged(c Curve, step, recent int64) {
	if step <= b.step {
		return
	}
	elapsed := float64(step - b.step)
	ahead := 0.0
	switch {
	case c.cold < 1:
		b.syncSmall(c, c.refill(elapsed))
	case c.window > c.step:
		passed := float64(recent) * min(1, elapsed*c.step.Seconds()/c.window.Seconds())
		if b.sync(c, c.refill(elapsed), passed, float64(recent)); b.stored > c.warning {
			ahead = passed / elapsed / 2
		}
	case elapsed > 1:
		b.sync(c, c.refill(elapsed), 0, 0)
	default:
		b.sync(c, c.refill(elapsed), float64(b.current), float64(b.current))
	}
	b.current, b.step, b.ahead = 0, step, ahead
}

// sync refills and drains the bucket by the formula.
func (b *Bucket) sync(c Curve, refill, passed, recent float64) {
	if b.stored < c.warning || b.stored > c.warning && recent < c.cold {
		b.stored += refill
	}
	b.stored = max(0, min(b.stored, c.maximum)-passed)
}

// syncSmall is sync for limits so small that mostly nothing passes in a step.
// All that passed since the last call is drained, or else such a resource would
// never get warm; and what is refilled until the next token has passed, which
// takes a step at least, does not lift it above the warning line, or else it
// would not stay so.
func (b *Bucket) syncSmall(c Curve, refill float64) {
	b.stored = max(0, b.stored-float64(b.current))
	if b.stored <= c.warning {
		pending := max(1, c.step.Seconds()*c.limit)
		b.stored = max(min(b.stored+refill, c.warning), b.stored+refill-pending)
	}
	b.stored = min(b.stored, c.maximum)
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
func (b *Bucket) Ceiling(c Curve) float64 { return c.Ceiling(b.stored - b.ahead) }

// Rescale moves the bucket from one curve to another and keeps its share of
// stored tokens: a resource that was half warm stays half warm.
func (b *Bucket) Rescale(from, to Curve) {
	if from.maximum > 0 {
		b.stored *= to.maximum / from.maximum
		// What passed was as much of the limit as it was then.
		b.current = int64(float64(b.current) * to.limit / from.limit)
	} else {
		b.stored = to.maximum
	}
	if from.step != to.step {
		b.step = b.step * int64(from.step) / int64(to.step)
	}
}
