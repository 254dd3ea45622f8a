package warmup

import "math"

// Bucket is how cold a resource is: the stored tokens of the mother bucket, and
// what has passed since they were last counted. It is not safe for concurrent
// use.
type Bucket struct {
	stored  float64
	step    int64   // the step that stored was last brought up to
	current float64 // tokens passed in it
	refused float64 // and tokens of turns that were refused in it, see Refuse
	largest float64 // and those of the largest call among them
	ahead   float64 // tokens by which the ceiling looks ahead, see SyncWindow

	// Which steps are idle ones. Both are numbers of steps, counted from step.
	busy    float64 // so many from step on are not idle, whatever passes in them
	pending float64 // so many before step are idle ones if the time after busy is; below zero, as many after it are not
}

// NewBucket returns the bucket of a stone-cold resource.
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
// floor(T·step / c) passed in it and nothing was held back: see HoldBack. Where not
// even one token passes in a step at the cold rate, a single step says nothing:
// see idleAtLength.
func (b *Bucket) Sync(c Curve, step int64) {
	elapsed, passed := float64(step-b.step), b.current
	if b.enter(step) {
		recent := passed
		if elapsed > 1 {
			recent = 0
		}
		b.advance(c, elapsed, passed, recent)
	}
}

// SyncSpaced is Sync for turns, which may be further apart than a step. The load is
// what passed and what was refused, see Refuse, and is judged at length whatever the
// limit.
func (b *Bucket) SyncSpaced(c Curve, step int64) {
	elapsed, passed, load, largest := float64(step-b.step), b.current, b.current+b.refused, b.largest
	if b.enter(step) {
		b.advanceAtLength(c, elapsed, passed, load, largest)
	}
}

// SyncWindow is Sync for a curve that is judged over a window longer than a
// step. recent is what passed in the window that ended when the step began; so
// much of it is drained as a step has of the window, and the ceiling is that of
// the middle of the step.
func (b *Bucket) SyncWindow(c Curve, step int64, recent float64) {
	elapsed, passed := float64(step-b.step), b.current
	if b.enter(step) {
		share := recent * min(1, elapsed*c.step.Seconds()/c.window.Seconds())
		if c.cold >= 1 {
			passed = share
		}
		if b.advance(c, elapsed, passed, recent); b.stored > c.warning {
			b.ahead = share / elapsed / 2
		}
	}
}

// enter goes over to a later step.
func (b *Bucket) enter(step int64) bool {
	if step <= b.step {
		return false
	}
	b.step, b.current, b.refused, b.largest, b.ahead = step, 0, 0, 0, 0
	return true
}

// advance refills the bucket after so many steps and drains what passed in them.
// recent is what the load is judged by.
func (b *Bucket) advance(c Curve, elapsed, passed, recent float64) {
	if c.cold < 1 {
		b.advanceAtLength(c, elapsed, passed, passed, 1)
		return
	}
	held := min(b.busy, elapsed)
	b.busy, b.pending = b.busy-held, 0
	idle := elapsed - held
	if recent >= c.cold {
		idle = 0
	} else if idle > 0 {
		passed = min(passed, recent)
	}
	b.refill(c, elapsed, idle, passed, held == elapsed)
}

// refill counts steps of which some were idle, and drains what passed in them.
func (b *Bucket) refill(c Curve, elapsed, idle, passed float64, isHeldBack bool) {
	isWarm := b.stored <= c.warning
	if isWarm {
		idle = max(elapsed, idle)
	}
	b.stored = max(0, min(b.stored+c.refill(idle), c.maximum)-passed)
	if isWarm && isHeldBack { // or else it would not stay so under full load
		b.stored = min(b.stored, c.warning)
	}
}

// advanceAtLength is advance where a single step says little: for limits so small
// that mostly nothing passes in one, and for turns.
func (b *Bucket) advanceAtLength(c Curve, elapsed, passed, load, largest float64) {
	idle := b.idleAtLength(c, elapsed, load, largest)
	isWarm := b.stored <= c.warning
	if elapsed > 1 { // what passed is older than what is refilled
		b.stored, passed = max(0, b.stored-passed), 0
	}
	if isWarm || idle > 0 || passed > 0 {
		b.refill(c, elapsed, idle, passed, idle == 0)
	}
}

// idleAtLength returns how many steps were idle, judged at length. A token of the load
// makes as many steps busy as it takes to come at the cold rate; when these are over,
// the whole time since they began was idle, as the load was less than the cold rate in
// it. Two calls ahead of the cold rate, the load is certain, and what was is forgotten.
// No load makes more steps busy than it takes to get stone-cold.
func (b *Bucket) idleAtLength(c Curve, elapsed, load, largest float64) (idle float64) {
	if load > 0 {
		most := 1 + min(2*largest*c.perToken, (c.maximum+largest)/c.refill(1))
		if busy := b.busy + load*c.perToken; busy < most {
			b.busy = busy
		} else {
			b.busy, b.pending = max(b.busy, most), min(b.pending, 0)
		}
	}
	b.pending += elapsed
	if b.busy >= elapsed*(1-roundingError) {
		b.busy = max(0, b.busy-elapsed)
		return 0
	}
	idle = max(0, b.pending)
	b.busy, b.pending = 0, 0
	return idle
}

// HoldBack tells that a call of n tokens was refused in the present step, for lack of
// tokens that the resource may have when it is warm. The time that they take at the
// present ceiling, but at least that in which load is judged, is then not idle: nothing
// is refilled for it.
func (b *Bucket) HoldBack(c Curve, n int64) {
	if c.limit == 0 {
		return
	}
	busy := max(c.window.Seconds(), float64(n)/b.Ceiling(c)) / c.step.Seconds()
	busy = math.Ceil(min(max(1, busy), maxSteps) - roundingError)
	b.busy, b.pending = max(b.busy, busy), min(b.pending, -busy)
}

// Refuse tells that a turn of n tokens was refused in the present step. It counts as
// load, like one that is granted: a load is no less for being refused.
func (b *Bucket) Refuse(n int64) {
	b.refused += float64(n)
	b.largest = max(b.largest, float64(n))
}

// Await tells that a call waits for a turn in the given step: no step before it is
// idle, unless less than the cold rate comes at length.
func (b *Bucket) Await(step int64) { b.busy = max(b.busy, float64(step-b.step)) }

// Pass counts n tokens that passed in a step, which is the one that Sync was
// last called for; a negative n takes back what was counted. What passed in an
// earlier step is drained already and stays so.
func (b *Bucket) Pass(step, n int64) {
	if step == b.step {
		b.current += float64(n)
		b.largest = max(b.largest, float64(n))
	}
}

// Ceiling returns the tokens per second that the bucket allows, on the curve it
// was last brought up to date with.
func (b *Bucket) Ceiling(c Curve) float64 { return c.Ceiling(b.stored - b.ahead) }

// IsFull says whether the bucket is that of a stone-cold resource, of which nothing has
// passed or was refused in its step, nor lately, so that the steps to come may be idle.
func (b *Bucket) IsFull(c Curve) bool {
	return b.stored >= c.maximum && b.current+b.refused == 0 && b.busy == 0
}

// Rescale moves the bucket from one curve to another and keeps its share of
// stored tokens: a resource that was half warm stays half warm.
func (b *Bucket) Rescale(from, to Curve) {
	if from.maximum > 0 {
		b.stored *= to.maximum / from.maximum
		b.ahead *= to.maximum / from.maximum
		// What passed was as much of the limit as it was then.
		b.current *= to.limit / from.limit
		b.rescaleBusy(from.limit / max(to.limit, from.limit))
	} else {
		b.stored = to.maximum
	}
	if from.step != to.step {
		b.step = b.step * int64(from.step) / int64(to.step)
		b.rescaleBusy(float64(from.step) / float64(to.step))
	}
}

func (b *Bucket) rescaleBusy(factor float64) { b.busy, b.pending = b.busy*factor, b.pending*factor }
