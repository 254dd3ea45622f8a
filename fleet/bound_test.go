package fleet_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/fleet"
)

// TestLeasesNeverPassMoreThanTheirBound holds the promise of [fleet.ModeLease] in fleets of
// all kinds: in any time T at most burst + rate·(T + life of a lease) pass, and what each
// instance may use on debt.
func TestLeasesNeverPassMoreThanTheirBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "instances")
		window := rapid.SampledFrom([]time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, time.Minute}).Draw(t, "window")
		rate := math.Exp(rapid.Float64Range(math.Log(0.5), math.Log(3000)).Draw(t, "log rate"))
		limit := rate * window.Seconds()
		burst := max(1, rate*rapid.Float64Range(0, 2).Draw(t, "burst"))
		load := rapid.Float64Range(0.2, 6).Draw(t, "load")
		roundTrip := time.Duration(rapid.IntRange(1, 60_000).Draw(t, "round trip (µs)")) * time.Microsecond
		w := newWorld(rapid.Uint64().Draw(t, "seed"), roundTrip)
		w.loss = rapid.SampledFrom([]float64{0, 0, 0.01, 0.2}).Draw(t, "loss")
		rates := even(n, rate*load)
		if n > 1 && rapid.Bool().Draw(t, "skewed") {
			rates = skewed(n, rate*load)
		}
		terms := fleet.Terms{Key: "flow/a", Limit: limit, Window: window, Burst: burst}
		w.join(terms, fleet.ModeLease, fleet.OutageClosed, rates...)
		const end = 6 * time.Second
		w.run(end)

		debt := 0.0
		for _, r := range rates {
			mean := min(1.5*r, rate) * max(0.01, 1.8*roundTrip.Seconds())
			debt += 2 + mean + 3.3*math.Sqrt(mean)
		}
		for _, length := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 5 * time.Second} {
			bound := burst + rate*(length+time.Second).Seconds() + debt
			require.LessOrEqual(t, float64(w.worst(0, end, length, time.Millisecond)), bound, "in %v", length)
		}
	})
}

// TestWindowsNeverPassMoreThanTheirBound holds the promise of [fleet.ModeWindow]: over windows
// that are aligned to buckets, the limit and what each instance may use on debt.
func TestWindowsNeverPassMoreThanTheirBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "instances")
		buckets := rapid.SampledFrom([]int{1, 2, 10}).Draw(t, "buckets")
		window := rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second, 2 * time.Second}).Draw(t, "window")
		limit := math.Floor(math.Exp(rapid.Float64Range(0, math.Log(3000*window.Seconds())).Draw(t, "log limit")))
		rate := limit / window.Seconds()
		load := rapid.Float64Range(0.2, 6).Draw(t, "load")
		roundTrip := time.Duration(rapid.IntRange(1, 20_000).Draw(t, "round trip (µs)")) * time.Microsecond
		w := newWorld(rapid.Uint64().Draw(t, "seed"), roundTrip)
		w.loss = rapid.SampledFrom([]float64{0, 0, 0.01, 0.2}).Draw(t, "loss")
		rates := even(n, rate*load)
		if n > 1 && rapid.Bool().Draw(t, "skewed") {
			rates = skewed(n, rate*load)
		}
		terms := fleet.Terms{Key: "flow/a", Limit: limit, Window: window, Buckets: buckets}
		w.join(terms, fleet.ModeWindow, fleet.OutageClosed, rates...)
		const end = 6 * time.Second
		w.run(end)

		debt := 0.0
		for _, r := range rates {
			mean := min(1.5*r, rate) * max(0.01, 1.8*roundTrip.Seconds())
			debt += 2 + mean + 3.3*math.Sqrt(mean)
		}
		worst := float64(w.worst(0, end, window, window/time.Duration(buckets)))
		require.LessOrEqual(t, worst, limit+debt)
	})
}
