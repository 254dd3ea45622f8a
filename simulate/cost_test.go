package simulate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// passedWith returns how many of many calls pass a limit of 10,000 tokens in a minute with a cost.
func passedWith(t *testing.T, c simulate.Cost) int {
	t.Helper()
	set := rules.Set{Flow: []flow.Rule{{Resource: "a", Limit: 10_000, Window: time.Minute, Algorithm: flow.FixedWindow}}}
	result, err := simulate.Run(t.Context(), set, simulate.Load{
		Streams: []simulate.Stream{{Resource: "a", Rate: 100, Until: 59 * time.Second, Cost: &c, ServiceTime: time.Millisecond}}, Seed: 7,
	}, simulate.Options{Duration: time.Minute, Events: true})
	require.NoError(t, err)
	passed := 0
	for _, e := range result.Events {
		if e.Outcome == simulate.Pass {
			passed++
		}
	}
	return passed
}

func TestCostsAreSettledWhenCallsEnd(t *testing.T) {
	t.Parallel()
	costs := func(estimate int, mean float64, shape simulate.Shape) simulate.Cost {
		return simulate.Cost{Estimate: estimate, Mean: mean, Shape: shape}
	}
	assert.Equal(t, 100, passedWith(t, costs(1, 100, "")), "what they cost counts")
	assert.Equal(t, 91, passedWith(t, costs(1000, 100, simulate.Fixed)), "what is left after 91 is not enough for an estimate")
	for _, shape := range []simulate.Shape{simulate.Uniform, simulate.Exponential, simulate.Lognormal} {
		passed := passedWith(t, costs(1, 10, shape))
		assert.InDelta(t, 1000, passed, 150, shape)
		assert.Equal(t, passed, passedWith(t, costs(1, 10, shape)), "it is repeatable")
	}
	assert.Equal(t, 2000, passedWith(t, simulate.Cost{Estimate: 1, Mean: 100, Max: 5}))
}

func TestMistakesInCostsAreFound(t *testing.T) {
	t.Parallel()
	_, err := simulate.Run(t.Context(), rules.Set{}, simulate.Load{Streams: []simulate.Stream{{
		Resource: "a", Rate: 1, Tokens: 3, Cost: &simulate.Cost{Shape: "flat", Sigma: 1},
	}}}, simulate.Options{Duration: time.Second})
	for _, text := range []string{
		"tokens has no effect beside cost", "cost.estimate is 0", "cost.actual.mean is 0", `cost.actual.shape is "flat"`,
		"cost.actual.sigma has no effect",
	} {
		require.ErrorContains(t, err, text)
	}
}
