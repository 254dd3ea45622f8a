package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
)

const (
	ms    = clock.Instant(time.Millisecond)
	start = clock.Instant(1_700_000_000 * int64(time.Second))
)

// judged returns what is found when calls passed at some moments between two
// milliseconds each.
func judged(r flow.Rule, passes ...[2]int) int {
	w := &wrong{out: new(strings.Builder)}
	p := newPromise(r, 1, start)
	for _, pass := range passes {
		p.add(start+clock.Instant(pass[0])*ms, start+clock.Instant(pass[1])*ms, 1)
	}
	p.judge(start+2000*ms, func(clock.Instant) bool { return false }, w)
	return w.count
}

func TestAPromiseThatIsBroken(t *testing.T) {
	sliding := flow.Rule{Resource: "r", Limit: 2, Window: 100 * time.Millisecond}
	strict, fixed := sliding, sliding
	strict.Strict = true
	fixed.Algorithm = flow.FixedWindow
	bucket := flow.Rule{Resource: "r", Limit: 100, Algorithm: flow.TokenBucket, Burst: 2}
	throttle := flow.Rule{Resource: "r", Limit: 100, Algorithm: flow.Throttle}
	for name, test := range map[string]struct {
		rule         flow.Rule
		broken, kept [][2]int
	}{
		"a sliding window": {sliding, [][2]int{{15, 15}, {60, 60}, {104, 109}}, [][2]int{{15, 15}, {60, 60}, {104, 110}}},
		"a strict one":     {strict, [][2]int{{15, 15}, {60, 60}, {114, 114}}, [][2]int{{15, 15}, {60, 60}, {114, 115}}},
		"a fixed one":      {fixed, [][2]int{{100, 100}, {101, 101}, {199, 199}}, [][2]int{{99, 100}, {101, 101}, {199, 199}}},
		"a bucket":         {bucket, [][2]int{{50, 50}, {50, 50}, {51, 58}}, [][2]int{{50, 50}, {50, 50}, {51, 59}}},
		"a throttle":       {throttle, [][2]int{{50, 50}, {51, 58}}, [][2]int{{50, 50}, {51, 59}}},
		"a closed one":     {flow.Rule{Resource: "r"}, [][2]int{{50, 50}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Positive(t, judged(test.rule, test.broken...))
			assert.Zero(t, judged(test.rule, test.kept...))
		})
	}
}

// No alarm is false, and of calls that take no time none is missed.
func TestAPromiseIsBrokenWhenTooMuchPassedForCertain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		instant := rapid.Bool().Draw(t, "calls take no time")
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		var passes [][2]int
		for range rapid.IntRange(1, 12).Draw(t, "passes") {
			pass := [2]int{rapid.IntRange(0, 60).Draw(t, "begin")}
			if pass[1] = pass[0]; !instant {
				pass[1] += rapid.IntRange(0, 30).Draw(t, "length")
			}
			passes = append(passes, pass)
		}
		broken := false
		for first := -20; first < 100; first++ {
			inside := 0
			for _, pass := range passes {
				if pass[0] >= first && pass[1] < first+20 {
					inside++
				}
			}
			broken = broken || inside > limit
		}
		found := judged(flow.Rule{Resource: "r", Limit: float64(limit), Window: 20 * time.Millisecond, Strict: true}, passes...) > 0
		if instant {
			require.Equal(t, broken, found, "%v", passes)
		}
		require.True(t, broken || !found, "%v", passes)
	})
}
