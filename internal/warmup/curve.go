package warmup

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Curve computes the limit, in tokens per second, that a number of stored tokens
// allows. It is a value and never changes. With T the limit per second, W the period in
// seconds and c the cold factor:
//
//	warning = W·T / (c − 1)
//	max     = warning + 2·W·T / (1 + c)
//	slope   = (c − 1) / T / (max − warning)
//	limit = 1 / ((stored − warning)·slope + 1/T)   above the warning line, else T
type Curve struct {
	limit   float64 // T, tokens per second
	factor  float64 // c
	warning float64 // stored tokens at or below which the resource is warm
	maximum float64 // stored tokens of a cold resource
	slope   float64 // seconds per token, per token above warning
	step    time.Duration

	// How the load is judged.
	window   time.Duration // the time by which it is judged
	cold     float64       // the whole tokens that pass in it at the cold rate
	perToken float64       // steps in which one token passes at the cold rate
	atLength bool          // over as long as the tokens take at the cold rate, rather than step by step
	mostBusy float64       // at length: the steps that a load can make busy; 0 if that depends on its calls
	slack    float64       // at length: the steps by which a load may fall short, as tokens are whole
}

// NewCurve returns the curve for a limit in tokens per second (0 or more), the
// period in which a cold resource becomes warm under full load, a cold factor
// greater than 1, and the step at which the limit is computed anew.
func NewCurve(limit float64, period time.Duration, coldFactor float64, step time.Duration) Curve {
	volume := period.Seconds() * limit
	depth := 2 * volume / (1 + coldFactor) // from max down to warning
	c := Curve{limit: limit, factor: coldFactor, step: step}
	c.warning = volume / (coldFactor - 1)
	c.maximum = c.warning + depth
	if slope := (coldFactor - 1) / limit / depth; slope <= math.MaxFloat64 {
		c.slope = slope // else the numbers are out of range, and the resource is always warm
	}
	return c.JudgedOver(step)
}

// JudgedOver returns the curve of a window, whose load is judged by what passed in the
// window rather than in the last step if it is longer. It may let all of its tokens
// pass in one step and none in the next ones, and still be under full load.
func (c Curve) JudgedOver(window time.Duration) Curve {
	c.window = max(c.step, window)
	c.cold = math.Floor(c.limit*c.window.Seconds()/c.factor + roundingError)
	c.perToken = min(c.factor/c.limit/c.step.Seconds(), maxSteps)
	c.atLength = c.window > c.step || c.cold < 1
	if c.cold >= 1 {
		c.mostBusy, c.slack = 1+c.steps(c.window), c.perToken
	} else {
		c.mostBusy, c.slack = c.busyAfter(1), 0
	}
	return c
}

// JudgedByCalls returns the curve of a throttle, whose calls may be further apart than
// a step. Its load is what passed and what was refused, see [Bucket.Refuse].
func (c Curve) JudgedByCalls() Curve {
	c.atLength, c.mostBusy, c.slack = true, 0, 0
	return c
}

// maxSteps is more steps than any resource exists.
const maxSteps = 1e15

// roundingError is how far a product may fall short of a whole number of tokens.
const roundingError = 1e-9

// busyAfter returns how many steps calls of so many tokens can make busy. Two calls ahead
// of the cold rate, the load is certain. No load makes more steps busy than it takes to
// become cold.
func (c Curve) busyAfter(tokens float64) float64 {
	return 1 + min(2*tokens*c.perToken, (c.maximum+tokens)/c.refill(1))
}

// steps returns a time in steps.
func (c Curve) steps(d time.Duration) float64 { return d.Seconds() / c.step.Seconds() }

// Limit returns the tokens per second that so many stored tokens allow.
func (c Curve) Limit(stored float64) float64 {
	if stored <= c.warning || c.limit == 0 {
		return c.limit
	}
	return 1 / ((stored-c.warning)*c.slope + 1/c.limit)
}

// refill returns the tokens that so many steps put into the bucket.
func (c Curve) refill(steps float64) float64 { return steps * c.step.Seconds() * c.limit }

// Step returns the number of the step that an instant falls in. Steps of a
// second are calendar seconds.
func (c Curve) Step(now clock.Instant) int64 { return int64(now) / int64(c.step) }

// StepStart returns when a step begins.
func (c Curve) StepStart(step int64) clock.Instant { return clock.Instant(step * int64(c.step)) }
