package scenario_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/scenario"
	"github.com/penstock-go/penstock/simulate"
)

func TestCostOfAStreamIsRead(t *testing.T) {
	t.Parallel()
	load, err := scenario.ParseLoad("l", []byte(
		"streams: [{resource: a, rate: 1, cost: {estimate: 500, actual: {mean: 800, shape: lognormal, sigma: 0.8, max: 4096}}}]"))
	require.NoError(t, err)
	assert.Equal(t, &simulate.Cost{
		Estimate: 500, Mean: 800, Shape: simulate.Lognormal, Sigma: 0.8, Max: 4096,
	}, load.Streams[0].Cost)
}

func TestMistakesInACostHaveTheirPlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{estimate: 0, actual: {mean: 8}}":              "l:1:51: cost.estimate is 0: must be from 1 to 2147483647",
		"{estimate: 5, actual: {mean: 8, shape: flat}}": `l:1:79: cost.actual.shape is "flat": must be fixed, uniform, exponential, lognormal`,
		"{estimate: 5, actual: {men: 8}}":               `l:1:63: unknown field "men": did you mean "mean"?`,
		"{estimate: 5}":                                 "l:1:40: cost.actual.mean is 0: must be more than 0 and at most 2147483647",
	} {
		_, err := scenario.ParseLoad("l", []byte("streams: [{resource: a, rate: 1, cost: "+text+"}]"))
		require.Error(t, err, text)
		assert.Contains(t, err.Error(), want, text)
	}
}
