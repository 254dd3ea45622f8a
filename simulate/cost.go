package simulate

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// Cost is what calls cost in tokens where that is known only at their end: they take an estimate, and
// settle what they really cost when they end, see [core.Guard.Settle].
type Cost struct {
	// Estimate is how many tokens a call takes when it enters. Must be 1 or more.
	Estimate int

	// Mean is what calls really cost on average. More than 0. Costs are rounded, and at least 0.
	Mean float64

	// Shape says how the costs differ: [Fixed], the default, [Uniform], [Exponential] or [Lognormal].
	Shape Shape

	// Sigma is the standard deviation of the logarithm of costs. [Lognormal] only, from 0 to
	// 3; 0 stands for 1.
	Sigma float64

	// Max bounds the costs. Defaults to no bound. The mean is that before it.
	Max int
}

func costShapes() []string {
	return []string{string(Fixed), string(Uniform), string(Exponential), string(Lognormal)}
}

const maxSigma = 3

func (c *Cost) validate(check checker) {
	check(c.Estimate >= 1 && c.Estimate <= math.MaxInt32, "cost.estimate", "is %d: must be from 1 to %d", c.Estimate, math.MaxInt32)
	check(c.Mean > 0 && c.Mean <= math.MaxInt32, "cost.actual.mean", "is %v: must be more than 0 and at most %d", c.Mean, math.MaxInt32)
	check(c.Shape == "" || slices.Contains(costShapes(), string(c.Shape)), "cost.actual.shape",
		"is %.60q: must be %s", c.Shape, strings.Join(costShapes(), ", "))
	check(c.Sigma >= 0 && c.Sigma <= maxSigma, "cost.actual.sigma", "is %v: must be from 0 to %d", c.Sigma, maxSigma)
	check(c.Sigma == 0 || c.Shape == Lognormal, "cost.actual.sigma", "has no effect with this shape: remove it")
	check(c.Max >= 0 && c.Max <= math.MaxInt32, "cost.actual.max", "is %d: must be from 1 to %d", c.Max, math.MaxInt32)
}

// costs are the costs of the calls of a stream, one after the other.
type costs struct {
	of     *Cost // nil if calls settle nothing
	random *rand.Rand
}

func newCosts(load Load, index int) costs {
	of := load.Streams[index].Cost
	if of == nil {
		return costs{}
	}
	return costs{of, newRandom(load.Seed, randomCosts, index, 0)}
}

// next returns what the next call costs, -1 if it settles nothing.
func (c costs) next() int {
	if c.of == nil {
		return -1
	}
	cost := c.of.Mean
	switch c.of.Shape {
	case Uniform:
		cost *= 2 * c.random.Float64()
	case Exponential:
		cost *= c.random.ExpFloat64()
	case Lognormal:
		sigma := c.of.Sigma
		if sigma == 0 {
			sigma = 1
		}
		cost *= math.Exp(sigma*c.random.NormFloat64() - sigma*sigma/2)
	}
	n := int(min(math.Round(cost), math.MaxInt32))
	if c.of.Max > 0 {
		n = min(n, c.of.Max)
	}
	return n
}

// tokensOf returns how many tokens a call of a stream takes when it enters.
func tokensOf(of Stream) int {
	if of.Cost != nil {
		return of.Cost.Estimate
	}
	return max(1, of.Tokens)
}
