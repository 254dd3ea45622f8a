package warmup

import "math"

// Bucket is the warm-up state of one resource: Sentinel's warm-up bucket. The more
// tokens it stores, the colder the resource is. It is not safe for concurrent use.
type Bucket struct {
	stored  float64
	step    int64   // the step that stored was last brought up to
	passed  float64 // tokens that passed in it
	refused float64 // tokens of calls that were refused in it, see AddRefused
	largest float64 // tokens of the largest call that passed or was refused in it
	backlog float64 // tokens that passed before it and are not drained yet

	// Which steps are idle. All are numbers of steps, counted from step.
	held    float64 // so many from step on are not idle, as calls were refused
	busy    float64 // so many from step on are not idle, for the load that there was
	pending float64 // so many before step are idle if the time after busy is; below zero, as many after it are not
}

// NewBucket returns the bucket of a cold resource.
func NewBucket(c Curve, step int64) Bucket {
	return Bucket{stored: c.maximum, step: step}
}

// Sync brings the bucket up to a step. It is called before the first decision
// of that step; for a step that is not later than the last it does nothing.
//
//	stored ≤ warning                    → stored += Δ·T
//	stored > warning and it was idle    → stored += Δ·T
//	stored = max(0, min(stored, max) − passed)
//
// passed is what passed in the step just before. That step was idle if less than
// floor(T·step / c) passed in it and no call was refused: see KeepBusy. Where a
// single step says little, the load is judged over a longer time: see idleAtLength.
func (b *Bucket) Sync(c Curve, step int64) {
	if step <= b.step {
		return
	}
	elapsed, passed, refused, largest := float64(step-b.step), b.passed, b.refused, b.largest
	b.step, b.passed, b.refused, b.largest = step, 0, 0, 0
	if !c.atLength {
		b.advance(c, elapsed, passed)
		return
	}
	most := c.mostBusy
	if most == 0 {
		most = c.busyAfter(largest)
	}
	idle := b.idleAtLength(c, elapsed, passed+refused, most)
	b.advanceAtLength(c, elapsed, idle, b.drain(c, elapsed, passed))
}

// advance refills the bucket after so many steps, and drains what passed in the first
// of them.
func (b *Bucket) advance(c Curve, elapsed, passed float64) {
	held := min(b.held, elapsed)
	b.held, b.pending = b.held-held, 0
	idle := elapsed - held
	switch {
	case elapsed == 1 && passed >= c.cold:
		idle = 0
	case elapsed > 1 && idle > 0: // nothing passed in the step just before
		passed = 0
	}
	b.refill(c, elapsed, idle, passed, held == elapsed)
}

// drain returns how many tokens to drain after so many steps. A window that is longer
// than a step may let all its tokens pass in one step and none in the next ones: they
// are drained at the rate of the limit.
func (b *Bucket) drain(c Curve, elapsed, passed float64) float64 {
	if c.window <= c.step {
		return passed
	}
	b.backlog += passed
	drained := min(b.backlog, b.Limit(c)*elapsed*c.step.Seconds())
	b.backlog -= drained
	return drained
}

// refill adds the tokens of the idle steps among those that elapsed, and drains what
// passed. isBusy tells that none of them was idle.
func (b *Bucket) refill(c Curve, elapsed, idle, passed float64, isBusy bool) {
	isWarm := b.stored <= c.warning
	if isWarm {
		idle = max(elapsed, idle)
	}
	b.stored = max(0, min(b.stored+c.refill(idle), c.maximum)-passed)
	if isWarm && isBusy { // or else it would not stay so under full load
		b.stored = min(b.stored, c.warning)
	}
}

// advanceAtLength is advance for a load that is judged at length.
func (b *Bucket) advanceAtLength(c Curve, elapsed, idle, drained float64) {
	isWarm := b.stored <= c.warning
	if elapsed > 1 { // what passed is older than what is refilled
		b.stored, drained = max(0, b.stored-drained), 0
	}
	if isWarm || idle > 0 || drained > 0 {
		b.refill(c, elapsed, idle, drained, idle == 0)
	}
}

// idleAtLength returns how many steps were idle, judged over as long as the tokens of the
// load take at the cold rate: they make so many steps busy. When these are over, all steps
// since they began were idle, as the load was below the cold rate in them. When the most
// steps are busy, the load is certain, and the steps before it do not matter any more.
func (b *Bucket) idleAtLength(c Curve, elapsed, load, most float64) (idle float64) {
	if load > 0 {
		if busy := b.busy + load*c.perToken; busy < most {
			b.busy = busy
		} else {
			b.busy, b.pending = max(b.busy, most), min(b.pending, 0)
		}
	}
	b.pending += elapsed
	if max(b.held, b.busy) >= elapsed*(1-roundingError)-c.slack {
		b.held, b.busy = max(0, b.held-elapsed), max(-c.slack, b.busy-elapsed)
		return 0
	}
	idle = max(0, b.pending)
	b.held, b.busy, b.pending = 0, 0, 0
	return idle
}

// KeepBusy notes that a window refused a call of n tokens in the present step, which may
// pass when the resource is warm. The steps that these tokens take at the present limit,
// and at least the time by which the load is judged, are then not idle.
func (b *Bucket) KeepBusy(c Curve, n int64) {
	if c.limit == 0 {
		return
	}
	busy := max(c.window.Seconds(), float64(n)/b.Limit(c)) / c.step.Seconds()
	busy = math.Ceil(min(max(1, busy), maxSteps) - roundingError)
	b.held, b.pending = max(b.held, busy), min(b.pending, -busy)
}

// AddRefused notes that a throttle refused a call of n tokens in the present step. It
// counts as load, as a call that passes does.
func (b *Bucket) AddRefused(n int64) {
	b.refused += float64(n)
	b.largest = max(b.largest, float64(n))
}

// KeepBusyUntil notes that a call waits for a turn in the given step. No step before it is
// idle, unless the load is below the cold rate over a longer time.
func (b *Bucket) KeepBusyUntil(step int64) { b.busy = max(b.busy, float64(step-b.step)) }

// AddPassed counts n tokens that passed in a step, the one that Sync was last called for;
// a negative n takes them back. What passed in an earlier step is drained already and
// stays so.
func (b *Bucket) AddPassed(step, n int64) {
	if step == b.step {
		b.passed += float64(n)
		b.largest = max(b.largest, float64(n))
	}
}

// Limit returns the tokens per second that the bucket allows, on the curve that Sync
// was last called with.
func (b *Bucket) Limit(c Curve) float64 { return c.Limit(b.stored) }

// IsFull says whether the bucket is as a new one: the resource is cold, and no load is
// being judged.
func (b *Bucket) IsFull(c Curve) bool {
	return b.stored >= c.maximum && b.passed == 0 && b.backlog == 0 && b.refused == 0 && b.held == 0 && b.busy == 0 && b.pending == 0
}

// Rescale moves the bucket from one curve to another. It keeps its share of stored
// tokens: a resource that was half warm stays half warm.
func (b *Bucket) Rescale(from, to Curve) {
	if from.maximum > 0 {
		b.stored = b.stored / from.maximum * to.maximum // the share first: it is in range, however small a limit is
		// What passed was as much of the limit as it was then.
		b.passed = b.passed / from.limit * to.limit
		b.backlog = b.backlog / from.limit * to.limit
		b.rescaleBusy(from.limit / max(to.limit, from.limit))
	} else {
		b.stored = to.maximum
	}
	if from.step != to.step {
		b.step = b.step * int64(from.step) / int64(to.step)
		b.rescaleBusy(float64(from.step) / float64(to.step))
	}
}

func (b *Bucket) rescaleBusy(factor float64) {
	b.held, b.busy, b.pending = b.held*factor, b.busy*factor, b.pending*factor
}
