package sharing_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/fleet"
)

// drawnFleet is a fleet of some kind under some load, which has run.
type drawnFleet struct {
	*world
	ran  time.Duration
	debt float64 // tokens that all instances together may use on debt
}

// runDrawn draws a fleet of one limit and runs it: the instances, the load and whether it is even,
// and the network.
func runDrawn(t *rapid.T, mode fleet.Mode, terms fleet.Terms, slowest time.Duration) drawnFleet {
	t.Helper()
	rate := terms.PerSecond()
	n := rapid.IntRange(1, 12).Draw(t, "instances")
	load := rapid.Float64Range(0.2, 6).Draw(t, "load")
	roundTrip := time.Duration(rapid.Int64Range(1, slowest.Microseconds()).Draw(t, "round trip (µs)")) * time.Microsecond
	w := newWorld(rapid.Uint64().Draw(t, "seed"), roundTrip)
	w.loss = rapid.SampledFrom([]float64{0, 0, 0.01, 0.2}).Draw(t, "loss")
	rates := even(n, rate*load)
	if n > 1 && rapid.Bool().Draw(t, "skewed") {
		rates = skewed(n, rate*load)
	}
	w.join(terms, mode, fleet.OutageClosed, rates...)
	f := drawnFleet{world: w, ran: 6 * time.Second}
	w.run(f.ran)
	for _, r := range rates {
		mean := min(1.5*r, rate) * max(0.01, 1.8*roundTrip.Seconds())
		f.debt += 2 + mean + 3.3*math.Sqrt(mean)
	}
	return f
}

// TestLeasesNeverPassMoreThanTheirBound holds the promise of [fleet.ModeLease] in fleets of
// all kinds: in any time T at most burst + rate·(T + life of a lease) pass, and what each
// instance may use on debt.
func TestLeasesNeverPassMoreThanTheirBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.SampledFrom([]time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, time.Minute}).Draw(t, "window")
		rate := math.Exp(rapid.Float64Range(math.Log(0.5), math.Log(3000)).Draw(t, "log rate"))
		burst := max(1, rate*rapid.Float64Range(0, 2).Draw(t, "burst"))
		terms := fleet.Terms{Key: "flow/a", Limit: rate * window.Seconds(), Window: window, Burst: burst}
		f := runDrawn(t, fleet.ModeLease, terms, 60*time.Millisecond)
		for _, length := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 5 * time.Second} {
			bound := burst + rate*(length+time.Second).Seconds() + f.debt
			require.LessOrEqual(t, float64(f.worst(0, f.ran, length, time.Millisecond)), bound, "in %v", length)
		}
	})
}

// TestWindowsNeverPassMoreThanTheirBound holds the promise of [fleet.ModeWindow]: over windows
// that are aligned to buckets, the limit and what each instance may use on debt.
func TestWindowsNeverPassMoreThanTheirBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		buckets := rapid.SampledFrom([]int{1, 2, 10}).Draw(t, "buckets")
		window := rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second, 2 * time.Second}).Draw(t, "window")
		limit := math.Floor(math.Exp(rapid.Float64Range(0, math.Log(3000*window.Seconds())).Draw(t, "log limit")))
		terms := fleet.Terms{Key: "flow/a", Limit: limit, Window: window, Buckets: buckets}
		f := runDrawn(t, fleet.ModeWindow, terms, 20*time.Millisecond)
		worst := float64(f.worst(0, f.ran, window, window/time.Duration(buckets)))
		require.LessOrEqual(t, worst, limit+f.debt)
	})
}
