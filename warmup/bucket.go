package warmup

// Bucket is how cold a resource is: the stored tokens of the mother bucket, and
// what has passed since they were last counted. It is not safe for concurrent
// use.
type Bucket struct {
	stored  float64
	step    int64   // the step that stored was last brought up to
	current float64 // tokens passed in it
	before  float64 // tokens passed in the step that it was at before
	ahead   float64 // tokens by which the ceiling looks ahead, see SyncWindow
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
// passed is what passed in the step just before. Where not even one token passes
// in a step at the cold rate, a single step says nothing: see syncSmall.
func (b *Bucket) Sync(c Curve, step int64) {
	elapsed, passed := float64(step-b.step), b.current
	if elapsed > 1 {
		passed = 0
	}
	if b.enter(step) {
		b.sync(c, elapsed, passed, passed)
	}
}

// SyncSpaced is Sync for turns, which may be further apart than a step however
// many calls wait for them: what passed since the last call counts, all of it to
// be drained, and its share of a step as the load.
func (b *Bucket) SyncSpaced(c Curve, step int64) {
	elapsed, passed := float64(step-b.step), b.current
	if b.enter(step) {
		if elapsed > 1 && c.cold >= 1 { // what passed is older than what is refilled
			b.stored = max(0, b.stored-passed)
			passed = 0
		}
		b.sync(c, elapsed, passed, b.before/elapsed)
	}
}

// SyncWindow is Sync for a curve that is judged over a window longer than a
// step. recent is what passed in the window that ended when the step began; so
// much of it is drained as a step has of the window, and the ceiling is that of
// the middle of the step.
func (b *Bucket) SyncWindow(c Curve, step int64, recent float64) {
	elapsed := float64(step - b.step)
	if b.enter(step) {
		passed := recent * min(1, elapsed*c.step.Seconds()/c.window.Seconds())
		if b.sync(c, elapsed, passed, recent); b.stored > c.warning {
			b.ahead = passed / elapsed / 2
		}
	}
}

// enter goes over to a later step.
func (b *Bucket) enter(step int64) bool {
	if step <= b.step {
		return false
	}
	b.step, b.before, b.current, b.ahead = step, b.current, 0, 0
	return true
}

// sync refills the bucket for so many steps and drains what passed.
func (b *Bucket) sync(c Curve, steps, passed, recent float64) {
	if c.cold < 1 {
		b.syncSmall(c, steps)
		return
	}
	if b.stored < c.warning || b.stored > c.warning && recent < c.cold {
		b.stored += c.refill(steps)
	}
	b.stored = max(0, min(b.stored, c.maximum)-passed)
}

// syncSmall is sync for limits so small that mostly nothing passes in a step.
// All that passed since the last call is drained, or else such a resource would
// never get warm; and what is refilled until the next token has passed, which
// takes a step at least, does not lift it above the warning line, or else it
// would not stay so.
func (b *Bucket) syncSmall(c Curve, steps float64) {
	b.stored = max(0, b.stored-b.before)
	if b.stored <= c.warning {
		refill, pending := c.refill(steps), max(1, c.refill(1))
		b.stored = max(min(b.stored+refill, c.warning), b.stored+refill-pending)
	}
	b.stored = min(b.stored, c.maximum)
}

// Pass counts n tokens that passed in a step, which is the one that Sync was
// last called for; a negative n takes back what was counted. What passed in an
// earlier step is drained already and stays so.
func (b *Bucket) Pass(step, n int64) {
	if step == b.step {
		b.current += float64(n)
	}
}

// Ceiling returns the tokens per second that the bucket allows, on the curve it
// was last brought up to date with.
func (b *Bucket) Ceiling(c Curve) float64 { return c.Ceiling(b.stored - b.ahead) }

// IsFull says whether the bucket is that of a stone-cold resource and nothing has
// passed in its step.
func (b *Bucket) IsFull(c Curve) bool { return b.stored >= c.maximum && b.current == 0 }

// Rescale moves the bucket from one curve to another and keeps its share of
// stored tokens: a resource that was half warm stays half warm.
func (b *Bucket) Rescale(from, to Curve) {
	if from.maximum > 0 {
		b.stored *= to.maximum / from.maximum
		b.ahead *= to.maximum / from.maximum
		// What passed was as much of the limit as it was then.
		b.current *= to.limit / from.limit
	} else {
		b.stored = to.maximum
	}
	if from.step != to.step {
		b.step = b.step * int64(from.step) / int64(to.step)
	}
}
