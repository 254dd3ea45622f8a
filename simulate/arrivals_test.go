package simulate_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// arrivals returns when the calls of a load arrive, in nanoseconds.
func arrivals(t T, load simulate.Load, duration time.Duration) (times []int64) {
	t.Helper()
	for _, e := range run(t, rules.Set{}, load, duration).Events {
		times = append(times, nanoseconds(e.T))
	}
	return times
}

// kth returns from + k/rate, reckoned exactly and rounded to the nanosecond.
func kth(from time.Duration, k int64, rate float64) int64 {
	offset := new(big.Rat).Quo(new(big.Rat).SetInt64(k*1e9), new(big.Rat).SetFloat64(rate))
	twice := new(big.Int).Mul(offset.Num(), big.NewInt(2))
	twice.Add(twice, offset.Denom()) // floor(x + 1/2)
	return int64(from) + twice.Quo(twice, new(big.Int).Mul(offset.Denom(), big.NewInt(2))).Int64()
}

func TestTheKthCallOfAnEvenStreamComesAtFromPlusKOverRate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.OneOf(
			rapid.SampledFrom([]float64{0.1, 0.3, 1, 3, 7, 333.3, 2000}),
			rapid.Float64Range(0.05, 5000),
		).Draw(t, "rate")
		from := time.Duration(rapid.Int64Range(0, int64(10*time.Second)).Draw(t, "from"))
		until := from + time.Duration(rapid.Int64Range(1, int64(3*time.Second)).Draw(t, "length"))
		got := arrivals(t, streams(simulate.Stream{Rate: rate, From: from, Until: until}), 0)

		var want []int64
		for k := int64(0); kth(from, k, rate) < int64(until); k++ {
			want = append(want, kth(from, k, rate))
		}
		require.InDeltaSlice(t, want, got, 1)
	})
}

func TestEvenStreamsDoNotDrift(t *testing.T) {
	t.Parallel()
	const rate = 30.1
	got := arrivals(t, streams(simulate.Stream{Rate: rate, Until: time.Hour}), 0)
	require.Len(t, got, int(rate*3600))
	for k, at := range got {
		if want := kth(0, int64(k), rate); at < want-1 || at > want+1 {
			require.Equal(t, want, at, "call %d", k)
		}
	}
}

func TestTimesMayComeInAnyOrderAndTwice(t *testing.T) {
	t.Parallel()
	times := at(2000, 500, 500, 0)
	got := arrivals(t, streams(simulate.Stream{Times: times}), 0)
	assert.Equal(t, []int64{0, 500e6, 500e6, 2000e6}, got)
	assert.Equal(t, at(2000, 500, 500, 0), times, "the caller's slice is left alone")
}

func TestCallsOfTheSameInstantArriveInTheOrderOfTheirStreams(t *testing.T) {
	t.Parallel()
	load := simulate.Load{Streams: []simulate.Stream{
		{Resource: "b", Rate: 2, From: time.Second, Until: 2 * time.Second},
		{Resource: "c", Times: at(1000, 1000)},
		{Resource: "a", Rate: 1, Until: 2 * time.Second},
	}}
	var order string
	for _, e := range run(t, rules.Set{}, load, 0).Events {
		order += e.Resource
	}
	assert.Equal(t, "abccab", order, "a at 0; b, c, c and a at 1 s; b at 1.5 s")
}

func TestStreamsMergeInOrderOfTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 40).Draw(t, "streams")
		var load simulate.Load
		for i := range count {
			load.Streams = append(load.Streams, simulate.Stream{
				Resource: string(rune('a' + i%26)),
				Rate:     rapid.Float64Range(1, 50).Draw(t, "rate"),
				Shape:    rapid.SampledFrom([]simulate.Shape{"", simulate.Even, simulate.Poisson}).Draw(t, "shape"),
				From:     time.Duration(rapid.IntRange(0, 900).Draw(t, "from")) * time.Millisecond,
				Until:    time.Second,
			})
		}
		merged := run(t, rules.Set{}, load, time.Second)
		total := 0
		for i := range load.Streams {
			alone := run(t, rules.Set{}, simulate.Load{Seed: load.Seed, Streams: load.Streams[i : i+1]}, time.Second)
			if load.Streams[i].Shape != simulate.Poisson { // those depend on their index
				total += len(alone.Events)
			}
		}
		assert.GreaterOrEqual(t, len(merged.Events), total)
		for i := 1; i < len(merged.Events); i++ {
			require.LessOrEqual(t, merged.Events[i-1].T, merged.Events[i].T)
		}
	})
}

func TestRandomStreams(t *testing.T) {
	t.Parallel()
	stream := simulate.Stream{Resource: "r", Rate: 200, Shape: simulate.Poisson, From: time.Second, Until: 101 * time.Second}
	one := simulate.Load{Seed: 1, Streams: []simulate.Stream{stream}}
	first := arrivals(t, one, 0)

	t.Run("the same seed gives the same calls", func(t *testing.T) {
		assert.Equal(t, first, arrivals(t, one, 0))
	})
	t.Run("another seed gives others", func(t *testing.T) {
		assert.NotEqual(t, first, arrivals(t, simulate.Load{Seed: 2, Streams: one.Streams}, 0))
	})
	t.Run("another stream has others", func(t *testing.T) {
		both := arrivals(t, simulate.Load{Seed: 1, Streams: []simulate.Stream{stream, stream}}, 0)
		twins := 0
		for i := 1; i < len(both); i++ {
			if both[i] == both[i-1] {
				twins++
			}
		}
		assert.Less(t, twins, len(both)/100)
	})
	t.Run("they stay within their bounds", func(t *testing.T) {
		assert.GreaterOrEqual(t, first[0], int64(time.Second))
		assert.Less(t, first[len(first)-1], int64(101*time.Second))
	})
	t.Run("their number is that of a Poisson process", func(t *testing.T) {
		assert.InDelta(t, 20_000, len(first), 565, "four standard deviations")
		perSecond := make([]float64, 100)
		for _, at := range first {
			perSecond[at/1e9-1]++
		}
		variance := 0.0
		for _, n := range perSecond {
			variance += (n - 200) * (n - 200) / 100
		}
		assert.InDelta(t, 200, variance, 115, "as large as the mean")
	})
}
