package simulate_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/simulate"
)

// requireLikeOracle compares what the engine does with each call to what the
// oracle says. Waits may differ by so many nanoseconds, and so may the time from which
// a call passes.
func requireLikeOracle(t T, rules []flow.Rule, load simulate.Load, duration time.Duration, tolerance float64) {
	t.Helper()
	set, offers := flowRules(rules...), offersOf(load, duration)
	got := run(t, set, load, duration).Events
	require.Len(t, got, len(offers))
	want := decide(set.Flow, offers)
	for i, e := range got {
		w := want[i]
		require.Equal(t, offers[i].at, nanoseconds(e.T))
		require.Equal(t, offers[i].resource, e.Resource)
		if passed := e.Outcome == simulate.Pass; passed != w.passed && isOnBorder(set.Flow, offers[:i+1], passed, tolerance) {
			return // what follows differs, too
		}
		require.Equal(t, w.passed, e.Outcome == simulate.Pass, "call %d, %+v: %+v, the oracle says %+v", i, offers[i], e, w)
		require.Equal(t, w.rule, e.Rule, "call %d, %+v: %+v, the oracle says %+v", i, offers[i], e, w)
		require.InDelta(t, w.wait, nanoseconds(e.Wait), tolerance, "call %d, %+v: %+v, the oracle says %+v", i, offers[i], e, w)
	}
}

// isOnBorder says whether the last call would have been decided on like that, had it
// come so many nanoseconds earlier or later.
func isOnBorder(rules []flow.Rule, offers []offer, passed bool, tolerance float64) bool {
	last, earliest := len(offers)-1, int64(0)
	if last > 0 {
		earliest = offers[last-1].at
	}
	for _, shift := range []int64{-int64(tolerance), int64(tolerance)} {
		moved := slices.Clone(offers)
		moved[last].at = max(earliest, moved[last].at+shift)
		if decide(rules, moved)[last].passed == passed {
			return true
		}
	}
	return false
}

// drawStreams draws a load for a limit of so many tokens a second: even streams
// that begin anywhere, and bursts.
func drawStreams(t *rapid.T, perSecond float64, span time.Duration, resources, origins []string) simulate.Load {
	var load simulate.Load
	for i := range rapid.IntRange(1, 4).Draw(t, "streams") {
		s := simulate.Stream{
			Resource: rapid.SampledFrom(resources).Draw(t, "called"),
			Origin:   rapid.SampledFrom(origins).Draw(t, "origin"),
			Tokens:   rapid.SampledFrom([]int{1, 1, 1, 2, 3, 5}).Draw(t, "tokens"),
		}
		if i > 0 && rapid.IntRange(0, 2).Draw(t, "kind") == 0 {
			for range rapid.IntRange(1, 5).Draw(t, "bursts") {
				at := time.Duration(rapid.Float64Range(0, 1).Draw(t, "at") * float64(span))
				s.Times = append(s.Times, slices.Repeat([]time.Duration{at}, rapid.IntRange(1, 20).Draw(t, "size"))...)
			}
			slices.Sort(s.Times)
		} else {
			s.Rate = perSecond * rapid.Float64Range(0.1, 3).Draw(t, "load") / float64(s.Tokens)
			s.From = time.Duration(rapid.Float64Range(0, 0.5).Draw(t, "from") * float64(span))
			if rapid.Bool().Draw(t, "ends") {
				s.Until = s.From + time.Duration(rapid.Float64Range(0.1, 0.5).Draw(t, "length")*float64(span))
			}
		}
		load.Streams = append(load.Streams, s)
	}
	return load
}

// spanOf is the time in which about so many tokens of a rule pass, for windows
// a few of them at least.
func spanOf(rule flow.Rule, tokens float64) time.Duration {
	span := time.Duration(tokens / perSecond(rule) * 1e9)
	return max(time.Microsecond, min(span, 20*time.Hour))
}

func perSecond(rule flow.Rule) float64 {
	return max(rule.Limit, 0.1) / flow.Kind().WithDefaults(rule).Window.Seconds()
}

// drawWindow draws a window whose limit is a whole number.
func drawWindow(t *rapid.T) flow.Rule {
	rule := flow.Rule{
		Limit: float64(rapid.OneOf(rapid.IntRange(0, 10), rapid.IntRange(1, 200)).Draw(t, "limit")),
		Window: rapid.SampledFrom([]time.Duration{
			10 * time.Millisecond, 250 * time.Millisecond, time.Second, 3 * time.Second, time.Minute, time.Hour,
		}).Draw(t, "window"),
	}
	if rapid.Bool().Draw(t, "fixed") {
		rule.Algorithm = flow.FixedWindow
		return rule
	}
	rule.Buckets = rapid.SampledFrom([]int{1, 2, 5, 10}).Draw(t, "buckets")
	rule.Strict = rapid.Bool().Draw(t, "strict")
	return rule
}

// drawQueue draws a throttle or a token bucket, without warm-up.
func drawQueue(t *rapid.T) flow.Rule {
	rule := flow.Rule{
		Limit: rapid.SampledFrom([]float64{
			0, 0.1, 0.3, 0.5, 1, 2.5, 3, 7, 10, 12.5, 33.3, 100, 999, 1000, 12_345, 100_000, 1_000_000,
		}).Draw(t, "limit"),
		Window: rapid.SampledFrom([]time.Duration{10 * time.Millisecond, time.Second, 3 * time.Second, time.Minute}).Draw(t, "window"),
	}
	each := float64(time.Second) / perSecond(rule)
	most := rapid.SampledFrom([]float64{0, 1, 2.5, 10, 50}).Draw(t, "maxWait")
	rule.MaxWait = time.Duration(each * most)
	if rapid.Bool().Draw(t, "throttle") {
		rule.Algorithm = flow.Throttle
		return rule
	}
	if each != math.Trunc(each) {
		rule.MaxWait = time.Duration(each * most * 1.0137) // so that fractions of a nanosecond make no difference
	}
	rule.Algorithm = flow.TokenBucket
	rule.Overdraft = rapid.Bool().Draw(t, "overdraft")
	rule.Burst = rapid.SampledFrom([]float64{0, 1, 4, 20}).Draw(t, "burst")
	return rule
}

func TestWindowsMatchTheOracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule := drawWindow(t)
		span := spanOf(rule, 3*max(20, rule.Limit))
		load := drawStreams(t, perSecond(rule), span, []string{"r"}, []string{""})
		requireLikeOracle(t, []flow.Rule{rule}, load, span, 0)
	})
}

func TestThrottlesAndBucketsMatchTheOracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule := drawQueue(t)
		span := spanOf(rule, 100)
		load := drawStreams(t, perSecond(rule), span, []string{"r"}, []string{""})
		requireLikeOracle(t, []flow.Rule{rule}, load, span, 2)
	})
}

func TestLargeWindowsMatchTheOracle(t *testing.T) {
	t.Parallel()
	for _, limit := range []float64{1000, 100_000, 1_000_000} {
		for _, algorithm := range []flow.Algorithm{flow.SlidingWindow, flow.FixedWindow} {
			t.Run(fmt.Sprint(limit, algorithm), func(t *testing.T) {
				t.Parallel()
				load := streams(
					simulate.Stream{Rate: 151, Tokens: int(limit / 97), From: 300 * time.Millisecond},
					simulate.Stream{Times: at(0, 0, 777, 2001), Tokens: int(limit / 3)},
				)
				requireLikeOracle(t, []flow.Rule{{Limit: limit, Algorithm: algorithm}}, load, 4*time.Second, 0)
			})
		}
	}
}

func TestTheWarmingBucketMatchesTheOracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule := flow.Rule{
			Algorithm: flow.TokenBucket,
			Limit:     rapid.SampledFrom([]float64{0.1, 0.7, 2, 5, 30, 1000, 1_000_000}).Draw(t, "limit"),
			WarmUp: flow.WarmUp{
				ColdFactor: rapid.SampledFrom([]float64{1.5, 3, 10}).Draw(t, "coldFactor"),
			},
		}
		each := float64(time.Second) / rule.Limit
		rule.WarmUp.Period = time.Duration(each * rapid.Float64Range(1, 200).Draw(t, "period"))
		rule.MaxWait = time.Duration(each * rapid.SampledFrom([]float64{0, 1.1, 7.7, 100.1}).Draw(t, "maxWait"))
		span := spanOf(rule, 200)
		load := drawStreams(t, rule.Limit, span, []string{"r"}, []string{""})
		requireLikeOracle(t, []flow.Rule{rule}, load, span, 5)
	})
}

func TestSeveralRulesMatchTheOracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		queues := rapid.IntRange(0, 3).Draw(t, "queues")
		windows := rapid.IntRange(0, 3).Draw(t, "windows")
		var list []flow.Rule
		for i := range queues + windows {
			rule := drawWindow(t)
			if i < queues {
				rule = drawQueue(t)
			}
			rule.Name = string(rune('a' + i))
			// Of one order of magnitude, so that each refuses some calls.
			rule.Window = time.Second
			rule.Limit = float64(rapid.SampledFrom([]int{0, 1, 5, 8, 10, 20, 50}).Draw(t, "common limit"))
			rule.MaxWait = min(rule.MaxWait, 987_654_321) // no slot is at that instant
			list = append(list, place(t, rule, i < queues))
		}
		list = rapid.Permutation(list).Draw(t, "order")
		load := drawStreams(t, 15, 8*time.Second, []string{"r", "s"}, []string{"", "a", "b"})
		requireLikeOracle(t, list, load, 8*time.Second, 2)
	})
}

// place says for which calls a rule is.
func place(t *rapid.T, r flow.Rule, queued bool) flow.Rule {
	r.Resource = rapid.SampledFrom([]string{"r", "s", ""}).Draw(t, "resource")
	switch {
	case r.Resource == "":
		r.Match, r.Shared = "*", rapid.Bool().Draw(t, "shared")
	case !queued && rapid.IntRange(0, 3).Draw(t, "related") == 0:
		r.Related = map[string]string{"r": "s", "s": "r"}[r.Resource]
	}
	r.Origin = rapid.SampledFrom([]string{"", "", "a", rule.OtherOrigins}).Draw(t, "origin")
	r.Shadow = rapid.IntRange(0, 5).Draw(t, "shadow") == 0
	return r
}

func TestFractionsOfALimitAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule := flow.Rule{
			Limit:  rapid.OneOf(rapid.SampledFrom([]float64{0.1, 0.5, 2.5, 33.3}), rapid.Float64Range(0.1, 50)).Draw(t, "limit"),
			Window: rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second, time.Minute}).Draw(t, "window"),
		}
		if rapid.Bool().Draw(t, "fixed") {
			rule.Algorithm = flow.FixedWindow
		}
		const windows = 100
		duration := windows * rule.Window
		from := time.Duration(rapid.Float64Range(0, 1).Draw(t, "from") * float64(rule.Window))
		load := streams(simulate.Stream{Rate: 3*perSecond(rule) + 20/rule.Window.Seconds(), From: from})
		perWindow := make([]int, windows)
		total := 0
		for _, e := range run(t, flowRules(rule), load, duration).Events {
			if e.Outcome == simulate.Pass {
				perWindow[nanoseconds(e.T)/int64(rule.Window)]++
				total++
			}
		}
		assert.InDelta(t, rule.Limit*windows, total, math.Ceil(rule.Limit)+1)
		assert.LessOrEqual(t, float64(slices.Max(perWindow)), math.Ceil(rule.Limit))
	})
}
