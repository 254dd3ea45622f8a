package simulate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/simulate"
)

// countedCall is a call that has passed, for the oracle.
type countedCall struct {
	at, ends int64
	fails    bool
}

// takes says whether the call has tokens of a rule at an instant: it is under way, or is counted.
func (c *countedCall) takes(counts rule.Counts, now int64) bool {
	return now < c.ends || counts != rule.CountsFailures && counts != rule.CountsSuccesses || c.fails == (counts == rule.CountsFailures)
}

// TestCountsByOutcomeAreLikeTheOracle compares with a count, at each arrival, of the calls of the
// window that are under way or have ended as the rule counts.
func TestCountsByOutcomeAreLikeTheOracle(t *testing.T) {
	const span = 6 * time.Second
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SampledFrom([]rule.Counts{rule.CountsFailures, rule.CountsSuccesses, rule.CountsCalls}).Draw(t, "counts")
		limit := rapid.IntRange(1, 12).Draw(t, "limit")
		r := flow.Rule{Resource: "a", Limit: float64(limit), Counts: counts, Algorithm: flow.SlidingWindow}
		bucket, buckets := int64(100*time.Millisecond), int64(10)
		if rapid.Bool().Draw(t, "fixed") {
			r.Algorithm, bucket, buckets = flow.FixedWindow, int64(time.Second), 1
		}
		share := rapid.SampledFrom([]float64{0, 0.25, 0.5, 1}).Draw(t, "fails")
		stream := simulate.Stream{
			Resource: "a", Rate: float64(rapid.IntRange(1, 40).Draw(t, "rate")), Fails: share,
			ServiceTime: time.Duration(rapid.IntRange(0, 30).Draw(t, "service")) * 50 * time.Millisecond,
		}
		var passed []countedCall
		for i, e := range run(t, flowRules(r), simulate.Load{Streams: []simulate.Stream{stream}}, span).Events {
			now, taken := nanoseconds(e.T), 0
			for _, c := range passed {
				if now/bucket-c.at/bucket < buckets && c.takes(counts, now) {
					taken++
				}
			}
			require.Equal(t, taken < limit, e.Outcome == simulate.Pass, "call %d at %v: %d are taken", i, e.T, taken)
			if e.Outcome == simulate.Pass {
				passed = append(passed, countedCall{at: now, ends: now + int64(stream.ServiceTime), fails: e.Failed})
			}
		}
	})
}
