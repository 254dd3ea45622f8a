package warmup

import "time"

// CostCurve is the warm-up of a token bucket, after Guava's SmoothWarmingUp. It computes
// what stored tokens cost, in seconds. The fuller the bucket, the colder the resource, and
// the longer a token takes. It is a value and never changes. With W the period in seconds
// and c the cold factor:
//
//	stable    = 1 / limit                              seconds per token, warm
//	threshold = 0.5 · W / stable                       stored tokens
//	max       = threshold + 2·W / (stable + c·stable)
//	interval  = stable up to the threshold, from there rising evenly to c·stable at max
//
// A number of tokens costs the area under the interval. It takes W to go from
// max down to the threshold, and as long to come back from empty when idle.
type CostCurve struct {
	stable    float64 // seconds per token
	threshold float64 // stored tokens
	maximum   float64
	depth     float64 // from max down to threshold
	excess    float64 // seconds by which all the tokens of depth cost more than stable
	restore   float64 // stored tokens that a second without calls adds
}

// slowest is the most seconds that a token takes, some centuries. It keeps the numbers in
// range.
const slowest = 1e10

// NewCostCurve returns the warm-up for a limit in tokens per second (0 or more),
// the period in which a cold resource becomes warm under full load, and a cold
// factor greater than 1.
func NewCostCurve(limit float64, period time.Duration, coldFactor float64) CostCurve {
	w := period.Seconds()
	z := CostCurve{stable: min(1/limit, slowest)}
	z.threshold = 0.5 * w / z.stable
	z.depth = 2 * w / (z.stable + z.stable*coldFactor)
	z.maximum = z.threshold + z.depth
	z.excess = (coldFactor - 1) * z.stable * z.depth / 2
	z.restore = z.maximum / w
	return z
}

// Maximum returns the stored tokens of a cold resource.
func (z CostCurve) Maximum() float64 { return z.maximum }

// Cost returns the seconds that n tokens take: stored ones as long as there are any, then
// fresh ones. Costs add up: tokens cost the same together as one after the other.
func (z CostCurve) Cost(stored, n float64) float64 { return z.area(stored) - z.area(stored-n) }

// area returns the seconds that so many stored tokens cost. Less than zero stored tokens
// are fresh ones that are owed.
func (z CostCurve) area(stored float64) float64 {
	above := max(0, (stored-z.threshold)/z.depth)
	return stored*z.stable + above*above*z.excess
}

// Restored returns the stored tokens after some seconds without a call.
func (z CostCurve) Restored(stored, seconds float64) float64 {
	return min(z.maximum, stored+seconds*z.restore)
}

// Limit returns the tokens per second that pass at so many stored tokens.
func (z CostCurve) Limit(stored float64) float64 {
	above := max(0, (stored-z.threshold)/z.depth)
	return 1 / (z.stable + 2*above*z.excess/z.depth)
}
