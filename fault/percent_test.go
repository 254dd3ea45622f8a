package fault_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/rule"
)

// chosen returns how many of the calls with so many numbers, from the first one, a rule
// chooses.
func chosen(t *testing.T, percent float64, seed, first uint64, calls int) (count int) {
	t.Helper()
	var c changes
	env := c.env(1)
	env.Seed = seed
	l := build(t, fault.Rule{Percent: percent, Abort: fault.Abort{HTTP: 503}}, env)
	for i := range calls {
		if decide(l, call(first+uint64(i), 0)) == rule.Block {
			count++
		}
	}
	return count
}

func TestShareOfChosenCallsIsThatOfTheRule(t *testing.T) {
	t.Parallel()
	const calls = 100_000
	for _, percent := range []float64{0.01, 0.5, 1, 5, 20, 50, 99, 99.99} {
		for seed := range uint64(2) {
			// Numbers are drawn; a rule must choose well among any of them.
			for _, first := range []uint64{0, 1 << 20, 1 << 27} {
				mean := calls * percent / 100
				sigma := math.Sqrt(mean * (1 - percent/100))
				got := chosen(t, percent, seed+1, first, calls)
				assert.InDelta(t, mean, got, 4*sigma, "%v %% by seed %d from %d", percent, seed+1, first)
			}
		}
	}
}

func TestHundredPercentIsEveryCall(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 100_000, chosen(t, 100, 7, 0, 100_000))
	almost := math.Nextafter(100, 0)
	assert.Equal(t, 100_000, chosen(t, almost, 7, 0, 100_000))
}

func TestSeedDecidesWhichCallsAreChosen(t *testing.T) {
	t.Parallel()
	which := func(seed uint64) (list []bool) {
		var c changes
		env := c.env(1)
		env.Seed = seed
		l := build(t, fault.Rule{Percent: 50, Abort: fault.Abort{HTTP: 503}}, env)
		for i := range uint64(64) {
			list = append(list, decide(l, call(i, 0)) == rule.Block)
		}
		return list
	}
	first, again, other := which(1), which(1), which(2)
	assert.Equal(t, first, again)
	assert.NotEqual(t, first, other)
	first, again = which(0), which(0)
	assert.NotEqual(t, first, again, "without a seed every limiter has its own")
}

// Two rules that choose half of the calls each choose a quarter together.
func TestRulesChooseIndependentlyOfEachOther(t *testing.T) {
	t.Parallel()
	const calls = 100_000
	build := func(seed uint64) limiter {
		var c changes
		env := c.env(1)
		env.Seed = seed
		return build(t, fault.Rule{Percent: 50, Abort: fault.Abort{HTTP: 503}}, env)
	}
	one, two := build(1), build(2)
	both := 0
	for i := range uint64(calls) {
		if decide(one, call(i, 0)) == rule.Block && decide(two, call(i, 0)) == rule.Block {
			both++
		}
	}
	assert.InDelta(t, calls/4, both, 4*math.Sqrt(calls*0.25*0.75))
}

func TestCallIsChosenAgainWheneverItIsAsked(t *testing.T) {
	t.Parallel()
	l, _ := newLimiter(t, fault.Rule{Percent: 50, Delay: second})
	for i := range uint64(100) {
		first := decide(l, call(i, 0))
		l.GiveBack(epoch, 0, 1)
		assert.Equal(t, first, decide(l, call(i, ms)))
	}
}
