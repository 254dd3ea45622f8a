package leap_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/stat"
)

// responseTimes draws response times of every magnitude from 1 µs to 2 h.
func responseTimes() *rapid.Generator[[]time.Duration] {
	one := rapid.Custom(func(t *rapid.T) time.Duration {
		magnitude := time.Microsecond << rapid.IntRange(0, 32).Draw(t, "magnitude")
		return magnitude + time.Duration(rapid.Int64Range(0, int64(magnitude)-1).Draw(t, "beyond"))
	})
	return rapid.SliceOfN(one, 1, 50)
}

func TestQuantilesAreWithinWhatIsClaimed(t *testing.T) {
	t.Parallel()
	const claimed = 0.032
	rapid.Check(t, func(t *rapid.T) {
		times := responseTimes().Draw(t, "times")
		q := rapid.Float64Range(0.001, 1).Draw(t, "q")
		slices.Sort(times)
		assert.InEpsilon(t, exactQuantile(times, q), record(times).Quantile(q), claimed)
	})
}

func TestQuantilesAscend(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := record(responseTimes().Draw(t, "times"))
		last := d.Quantile(0)
		for q := 0.05; q <= 1; q += 0.05 {
			next := d.Quantile(q)
			assert.GreaterOrEqual(t, next, last, "q = %v", q)
			last = next
		}
	})
}

func TestCountUpToAscends(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		times := responseTimes().Draw(t, "times")
		d := record(times)
		var last uint64
		for limit := time.Microsecond; limit < 3*time.Hour; limit += limit/9 + 1 {
			next := upTo(d, limit)
			assert.GreaterOrEqual(t, next, last, "up to %v", limit)
			assert.LessOrEqual(t, next, countUpTo(times, limit+limit/8), "more than there are around %v", limit)
			assert.GreaterOrEqual(t, next, countUpTo(times, limit-limit/8), "fewer than there are around %v", limit)
			last = next
		}
		assert.Equal(t, d.Count, upTo(d, 3*time.Hour))
	})
}

func countUpTo(times []time.Duration, limit time.Duration) (count uint64) {
	for _, d := range times {
		if d <= limit {
			count++
		}
	}
	return count
}

func TestSinceIsTheDifference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		earlier, later := responseTimes().Draw(t, "earlier"), responseTimes().Draw(t, "later")
		var h leap.Histogram
		for _, d := range earlier {
			h.Record(d)
		}
		before := h.Snapshot()
		for _, d := range later {
			h.Record(d)
		}
		assert.Equal(t, record(later), h.Snapshot().Since(before))

		var sum stat.Distribution
		sum.Add(before, stat.Distribution{})
		sum.Add(h.Snapshot(), before)
		assert.Equal(t, h.Snapshot(), sum)
		sum.Add(before, h.Snapshot())
		assert.Equal(t, h.Snapshot(), sum, "what went down adds nothing")
	})
}
