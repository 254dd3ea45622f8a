package simulate_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/simulate"
)

// Warm-up by the mother bucket is compared second by second: what the engine
// saves up of fractional ceilings may pass a call earlier or later.
func TestTheMotherBucketIsByTheBook(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule := flow.Rule{
			Resource: "r",
			Limit:    rapid.SampledFrom([]float64{60, 100, 333.3}).Draw(t, "limit"),
			// Those of a short period waver about the warning line, and that is
			// sensitive to a single call.
			WarmUp: rapid.SampledFrom([]flow.WarmUp{
				{Period: 3 * time.Second, ColdFactor: 1.5},
				{Period: 10 * time.Second, ColdFactor: 3},
				{Period: 10 * time.Second, ColdFactor: 5},
			}).Draw(t, "warm-up"),
		}
		if rapid.Bool().Draw(t, "throttle") {
			rule.Algorithm = flow.Throttle
			rule.MaxWait = rapid.SampledFrom([]time.Duration{0, 500 * time.Millisecond, 3 * time.Second}).Draw(t, "maxWait")
		}
		const duration = 14 * time.Second
		load := streams(simulate.Stream{
			Rate: rule.Limit * rapid.SampledFrom([]float64{0.5 / rule.WarmUp.ColdFactor, 0.61, 1.13, 2.1}).Draw(t, "load"),
			From: time.Duration(rapid.SampledFrom([]int{0, 300, 999, 2500}).Draw(t, "from")) * time.Millisecond,
		})
		got := run(t, flowRules(rule), load, duration).Passed("r")
		offers := offersOf(load, duration)
		want := make([]int, len(got))
		for i, v := range judge([]flow.Rule{rule}, offers) {
			if second := (offers[i].at + v.wait) / 1e9; v.passed && second < int64(len(want)) {
				want[second]++
			}
		}
		for i := range want {
			require.InDelta(t, want[i], got[i], math.Max(3, 0.04*float64(want[i])), "second %d\ngot  %v\nwant %v", i, got, want)
		}
	})
}
