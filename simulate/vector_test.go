package simulate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/simulate"
)

// The vectors of the algorithms' description.

func TestVectorA(t *testing.T) {
	t.Parallel()
	rule := flow.Rule{Limit: 1000, WarmUp: flow.WarmUp{Period: 10 * time.Second, ColdFactor: 3}}
	rising := []int{333, 348, 366, 387, 412, 442, 479, 528, 594, 692, 856, 1000}
	tests := map[float64][]int{
		2000: upTo(rising, 1000),
		500:  upTo(rising, 500),
		300:  upTo(nil, 300),
	}
	for rate, want := range tests {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			t.Parallel()
			load := streams(simulate.Stream{Rate: rate})
			got := run(t, flowRules(rule), load, 20*time.Second).Passed("r")
			assert.InDeltaSlice(t, want, got, 2, "%v", got)
		})
	}
}

// upTo returns twenty seconds of a ceiling that rises and of a load that is
// steady at most.
func upTo(rising []int, most int) []int {
	want := make([]int, 20)
	for i := range want {
		want[i] = most
		if i < len(rising) {
			want[i] = min(rising[i], most)
		}
	}
	return want
}

func TestNoSecondOfAnyPhaseExceedsTheCeilingsItSpans(t *testing.T) {
	t.Parallel()
	rule := flow.Rule{Limit: 1000, WarmUp: flow.WarmUp{Period: 10 * time.Second}}
	for from := 0; from < 1000; from += 170 {
		load := streams(simulate.Stream{Rate: 2000, From: time.Duration(from) * time.Millisecond})
		result := run(t, flowRules(rule), load, 13*time.Second)
		var tenths [130]int
		for _, e := range result.Events {
			if e.Outcome == simulate.Pass {
				tenths[nanoseconds(e.T)/1e8]++
			}
		}
		for end := 10; end < len(tenths); end++ {
			ceiling := *result.Seconds[(end-1)/10].Ceiling // it rises
			assert.LessOrEqual(t, float64(sum(tenths[end-10:end])), ceiling+1, "from %d ms, until %d00 ms", from, end)
		}
	}
}

func TestVectorAInFineStepsFollowsTheIdealCurve(t *testing.T) {
	t.Parallel()
	ideal := []float64{341, 358, 378, 402, 431, 467, 514, 579, 677, 854, 1000, 1000, 1000}
	rule := flow.Rule{Limit: 1000, WarmUp: flow.WarmUp{Period: 10 * time.Second, Step: 100 * time.Millisecond}}
	got := run(t, flowRules(rule), streams(simulate.Stream{Rate: 2000}), 13*time.Second).Passed("r")
	for i, want := range ideal {
		assert.InEpsilon(t, want, got[i], 0.04, "second %d of %v", i, got)
	}
}

func TestVectorB(t *testing.T) {
	t.Parallel()
	rule := flow.Rule{
		Limit: 5, Algorithm: flow.TokenBucket, MaxWait: time.Hour,
		WarmUp: flow.WarmUp{Period: 1500 * time.Millisecond},
	}
	want := []float64{0, 0.547, 0.440, 0.333, 0.230, 0.200, 0.200, 0.200}
	got := waits(run(t, flowRules(rule), streams(simulate.Stream{Times: make([]time.Duration, len(want))}), 0))
	for i := len(got) - 1; i > 0; i-- {
		got[i] -= got[i-1] // of a caller that calls again when it has been served
	}
	assert.InDeltaSlice(t, want, got, 0.002, "%v", got)
}

func TestASmallLimitWarmsUp(t *testing.T) {
	t.Parallel()
	rule := flow.Rule{Limit: 2, WarmUp: flow.WarmUp{Period: time.Minute}}
	t.Run("at the cold ceiling of 0.667 two calls pass in three seconds", func(t *testing.T) {
		t.Parallel()
		got := run(t, flowRules(rule), streams(simulate.Stream{Rate: 50}), 12*time.Second).Passed("r")
		assert.InDelta(t, 8, sum(got), 1, "%v", got)
	})
	t.Run("and warm it has its limit", func(t *testing.T) {
		t.Parallel()
		got := run(t, flowRules(rule), streams(simulate.Stream{Rate: 50}), 5*time.Minute).Passed("r")
		assert.Equal(t, 120, sum(got[240:]), "%v", got)
	})
	t.Run("also spaced", func(t *testing.T) {
		t.Parallel()
		spaced := rule
		spaced.Algorithm, spaced.MaxWait = flow.Throttle, 10*time.Second
		got := run(t, flowRules(spaced), streams(simulate.Stream{Rate: 50}), 5*time.Minute).Passed("r")
		assert.InDelta(t, 8, sum(got[:12]), 1, "%v", got)
		assert.InDelta(t, 120, sum(got[240:]), 1, "%v", got)
	})
}

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}
