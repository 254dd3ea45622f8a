package share

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// partsOf returns the parts of all instances.
func partsOf(limit float64, demands []float64) []float64 {
	allocation := allocate(limit, demands)
	parts := make([]float64, len(demands))
	for i, demand := range demands {
		parts[i] = allocation.part(demand)
	}
	return parts
}

func TestPartsByDemand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		demands, parts []float64
	}{
		"one instance has all":                       {[]float64{5}, []float64{1000}},
		"without demand, all are equal":              {[]float64{0, 0, 0, 0}, []float64{250, 250, 250, 250}},
		"too much demand of all: equal":              {[]float64{9000, 400, 400, 300}, []float64{250, 250, 250, 250}},
		"one demands less, with headroom":            {[]float64{9000, 9000, 100}, []float64{445, 445, 110}},
		"one without demand keeps a small part":      {[]float64{9000, 0}, []float64{975, 25}},
		"enough for all: what is left goes to all":   {[]float64{400, 100}, []float64{430 + 460*31.1803/52.3607, 110 + 460*21.1803/52.3607}},
		"a demand that is negative counts as none":   {[]float64{9000, -5}, []float64{975, 25}},
		"demand without bounds does not break it":    {[]float64{math.Inf(1), 0}, []float64{975, 25}},
		"fewer tokens than instances are fractions":  {[]float64{1e4, 1e4, 1e4, 1e4}, []float64{250, 250, 250, 250}},
		"two instances that demand more than others": {[]float64{9000, 9000, 100, 100}, []float64{390, 390, 110, 110}},
	} {
		assert.InDeltaSlice(t, test.parts, partsOf(1000, test.demands), 1e-3, name)
	}
}

func TestPartsAreTheLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.OneOf(rapid.Float64Range(0, 10), rapid.Float64Range(0, 1e9)).Draw(t, "limit")
		demand := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 10), rapid.Float64Range(0, 1e9))
		demands := rapid.SliceOfN(demand, 1, 120).Draw(t, "demands")
		parts := partsOf(limit, demands)
		even := limit / float64(len(demands))
		sum := 0.0
		for i, part := range parts {
			sum += part
			require.GreaterOrEqual(t, part, min(demands[i], even)*(1-1e-9), "an instance has what it demands, up to an even part")
			require.GreaterOrEqual(t, part, quietPart*even*(1-1e-9), "an instance has a small part always")
			for j := range parts {
				require.False(t, demands[i] <= demands[j] && part > parts[j]*(1+1e-9), "who demands more has no less")
			}
		}
		require.InDelta(t, limit, sum, 1e-9*limit)
	})
}
