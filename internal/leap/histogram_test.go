package leap_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/stat"
)

// record returns what a histogram makes of some response times.
func record(times []time.Duration) stat.Distribution {
	var h leap.Histogram
	for _, d := range times {
		h.Record(d)
	}
	return h.Snapshot()
}

// exactQuantile returns the response time that the fraction q of all did not
// exceed. The times must be sorted.
func exactQuantile(times []time.Duration, q float64) time.Duration {
	return times[max(0, int(math.Ceil(q*float64(len(times))-1e-9))-1)]
}

// distributed returns n response times in ascending order, given the inverse
// of their distribution function in seconds.
func distributed(n int, inverse func(p float64) float64) []time.Duration {
	times := make([]time.Duration, n)
	for i := range times {
		times[i] = time.Duration(inverse((float64(i)+0.5)/float64(n)) * float64(time.Second))
	}
	return times
}

func uniform(from, to time.Duration) func(float64) float64 {
	return func(p float64) float64 { return from.Seconds() + p*(to-from).Seconds() }
}

func logNormal(median time.Duration, sigma float64) func(float64) float64 {
	return func(p float64) float64 {
		return median.Seconds() * math.Exp(sigma*math.Sqrt2*math.Erfinv(2*p-1))
	}
}

func always(d time.Duration) func(float64) float64 { return uniform(d, d) }

// mixed follows one distribution for the given share of all and another for
// the rest, all of which is slower.
func mixed(share float64, fast, slow func(float64) float64) func(float64) float64 {
	return func(p float64) float64 {
		if p < share {
			return fast(p / share)
		}
		return slow((p - share) / (1 - share))
	}
}

func TestQuantilesAreWithinFivePercent(t *testing.T) {
	t.Parallel()
	const samples, tolerance = 20_000, 0.05
	for name, inverse := range map[string]func(p float64) float64{
		"constant 1µs":             always(time.Microsecond),
		"constant 1.05ms":          always(1050 * time.Microsecond),
		"constant 16.8ms":          always(16_800 * time.Microsecond),
		"constant 1s":              always(time.Second),
		"constant 1h":              always(time.Hour),
		"uniform 1µs to 100µs":     uniform(time.Microsecond, 100*time.Microsecond),
		"uniform 1ms to 2ms":       uniform(time.Millisecond, 2*time.Millisecond),
		"uniform 1µs to 1h":        uniform(time.Microsecond, time.Hour),
		"log-normal around 20µs":   logNormal(20*time.Microsecond, 0.5),
		"log-normal around 5ms":    logNormal(5*time.Millisecond, 1),
		"log-normal around 1s":     logNormal(time.Second, 1.5),
		"bimodal 1ms and 1s":       mixed(0.8, always(time.Millisecond), always(time.Second)),
		"bimodal 50µs and 1h":      mixed(0.95, logNormal(50*time.Microsecond, 0.2), always(time.Hour)),
		"bimodal 2ms and 30–40 s":  mixed(0.3, always(2*time.Millisecond), uniform(30*time.Second, 40*time.Second)),
		"log-normal and a timeout": mixed(0.985, uniform(time.Millisecond, 3*time.Millisecond), always(30*time.Second)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			times := distributed(samples, inverse)
			d := record(times)
			assert.Equal(t, uint64(samples), d.Count)
			for _, q := range []float64{0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1} {
				assert.InEpsilon(t, exactQuantile(times, q), d.Quantile(q), tolerance, "q = %v", q)
			}
		})
	}
}

func TestHistogramOfNothing(t *testing.T) {
	t.Parallel()
	d := record(nil)
	assert.Zero(t, d.Count)
	assert.Empty(t, d.Buckets)
	assert.Zero(t, d.Quantile(0.99))
	assert.Zero(t, upTo(d, time.Hour))
}

func TestHistogramKeepsWhatIsOutOfRange(t *testing.T) {
	t.Parallel()
	d := record([]time.Duration{math.MinInt64, -1, 0})
	assert.Equal(t, uint64(3), d.Count)
	assert.Less(t, d.Quantile(1), time.Microsecond)

	d = record([]time.Duration{3 * time.Hour, 24 * 365 * time.Hour, math.MaxInt64})
	assert.Equal(t, uint64(3), d.Count)
	assert.Len(t, d.Buckets, 1)
	assert.Greater(t, d.Quantile(0.5), 2*time.Hour, "longer than any but the last bucket")
}

func TestDistributionBucketsHoldWhatWasRecorded(t *testing.T) {
	t.Parallel()
	for d := time.Duration(1); d < 2*time.Hour; d += d/7 + 1 {
		buckets := record([]time.Duration{d}).Buckets
		if assert.Len(t, buckets, 1) {
			b := buckets[0]
			assert.True(t, b.Low <= d && d < b.High, "%v is not in %v–%v", d, b.Low, b.High)
			assert.LessOrEqual(t, b.High-b.Low, max(time.Nanosecond, d/16), "the bucket of %v is too wide", d)
		}
	}
}

func TestDistributionSince(t *testing.T) {
	t.Parallel()
	var h leap.Histogram
	h.Record(time.Millisecond)
	h.Record(time.Second)
	before := h.Snapshot()
	h.Record(time.Second)
	h.Record(time.Minute)
	after := h.Snapshot()

	since := after.Since(before)
	assert.Equal(t, record([]time.Duration{time.Second, time.Minute}), since)
	assert.Equal(t, after, after.Since(stat.Distribution{}), "since the beginning: all")
	assert.Zero(t, after.Since(after).Count)
	assert.Equal(t, uint64(2), before.Count, "a snapshot stays as it was")
}

func TestCountUpTo(t *testing.T) {
	t.Parallel()
	d := record([]time.Duration{time.Millisecond, 2 * time.Millisecond, 2 * time.Millisecond, time.Second})
	for limit, want := range map[time.Duration]uint64{
		-1: 0, 0: 0, 900 * time.Microsecond: 0, 1100 * time.Microsecond: 1,
		1900 * time.Microsecond: 1, 2200 * time.Microsecond: 3,
		900 * time.Millisecond: 3, 1100 * time.Millisecond: 4, math.MaxInt64: 4,
	} {
		assert.Equal(t, want, upTo(d, limit), "up to %v", limit)
	}
}

func TestHistogramAllocatesOnlyForNewMagnitudes(t *testing.T) {
	var h leap.Histogram
	h.Record(time.Millisecond)
	assert.Zero(t, testing.AllocsPerRun(1000, func() { h.Record(time.Millisecond) }))
}

// upTo returns how many response times were at most the limit. The bucket that it parts counts in proportion.
func upTo(d stat.Distribution, limit time.Duration) (sum uint64) {
	for _, b := range d.Buckets {
		switch {
		case b.High <= limit:
			sum += b.Count
		case b.Low < limit:
			sum += uint64(float64(b.Count) * float64(limit-b.Low) / float64(b.High-b.Low))
		}
	}
	return sum
}
