package adaptive_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/rule"
)

// threefold is five streams, one of each priority, which together come three times as
// often as a service of a thousand calls a second can serve.
func threefold(takes time.Duration) (streams []stream) {
	for _, p := range rule.Priorities() {
		streams = append(streams, stream{rate: 600, priority: p, callers: 300, takes: takes})
	}
	return streams
}

func TestConcurrencyLimitShedsTheLeastImportantFirst(t *testing.T) {
	t.Parallel()
	s := newScene(t, adaptive.Rule{Strategy: adaptive.Threshold, Concurrency: 100})
	s.run(2*time.Second, nil, threefold(100*time.Millisecond)...)
	out := s.run(20*time.Second, nil, threefold(100*time.Millisecond)...)
	assert.Greater(t, out[0].share(), 0.99, "critical")
	assert.InDelta(t, 0.6, out[1].share(), 0.1, "high")
	for _, low := range out[2:] {
		assert.Less(t, low.share(), 0.05)
	}
	passed := 0
	for _, o := range out {
		passed += o.passed
	}
	assert.Greater(t, float64(passed)/20, 0.9*1000, "the limit is made use of")
	assert.InDelta(t, 1./3, s.gauge("passing_share"), 0.15)
}

func TestQPSLimitShedsTheLeastImportantFirst(t *testing.T) {
	t.Parallel()
	s := newScene(t, adaptive.Rule{Strategy: adaptive.Threshold, QPS: 1000})
	s.run(2*time.Second, nil, threefold(time.Millisecond)...)
	out := s.run(20*time.Second, nil, threefold(time.Millisecond)...)
	assert.Greater(t, out[0].share(), 0.99, "critical")
	assert.InDelta(t, 0.63, out[1].share(), 0.07, "high")
	for _, low := range out[2:] {
		assert.Zero(t, low.passed)
	}
}

// A signal that follows what passes: the threshold settles where the signal is below its
// own, and stays there.
func TestSignalShedsAsManyAsNeedBeAndNoMore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signal rule.Signal
		rule   adaptive.Rule
		value  func(passing float64) float64
		want   float64 // calls in a second
	}{
		{rule.SignalCPU, adaptive.Rule{CPU: 0.8}, func(p float64) float64 { return min(1, p/1000) }, 800},
		{rule.SignalMemory, adaptive.Rule{Memory: 0.9}, func(p float64) float64 { return min(1, 0.5+p/2000) }, 800},
		{rule.SignalSchedulerDelay, adaptive.Rule{SchedulerDelay: 20 * time.Millisecond}, func(p float64) float64 {
			return 0.001 / max(0.001, 1-p/1000)
		}, 950},
	} {
		t.Run(string(c.signal), func(t *testing.T) {
			t.Parallel()
			c.rule.Strategy = adaptive.Threshold
			s := newScene(t, c.rule)
			sampled := s.now
			sample := func(passing float64) {
				if s.now.Sub(sampled) >= 250*time.Millisecond {
					sampled = s.now
					s.signal(c.signal, c.value(passing))
				}
			}
			s.run(15*time.Second, sample, threefold(10*time.Millisecond)...)
			var second []float64
			for range 30 {
				out := s.run(time.Second, sample, threefold(10*time.Millisecond)...)
				passed := 0
				for _, o := range out {
					passed += o.passed
				}
				second = append(second, float64(passed))
				require.Zero(t, out[4].passed, "sheddable calls")
				require.Zero(t, out[3].passed, "low calls")
				require.Greater(t, out[0].share(), 0.97, "critical calls")
			}
			for i, passed := range second {
				assert.InDelta(t, 0.85*c.want, passed, 0.25*c.want, "second %d", i)
			}
			out := s.run(20*time.Second, sample, stream{rate: 300, takes: 10 * time.Millisecond})
			assert.Greater(t, out[0].share(), 0.97, "after the overload")
			assert.InDelta(t, 1, s.gauge("passing_share"), 0)
		})
	}
}

// A caller is served for a while, and in a minute everybody is.
func TestSameCallersPassForAWhile(t *testing.T) {
	t.Parallel()
	const callers = 100
	s := newScene(t, adaptive.Rule{Strategy: adaptive.Threshold, QPS: 500})
	var turns [callers]int // seconds in which the caller was served
	decided := 0
	for second := range 63 {
		var arrived, passed [callers]int
		for i := range 1500 {
			s.now = s.now.Add(time.Second / 1500)
			c := s.request(rule.PriorityNormal, fmt.Sprintf("caller-%d", i%callers))
			arrived[i%callers]++
			if ticket, decision := s.limiter.Acquire(c); decision == rule.Pass {
				s.limiter.Done(ticket, rule.Exit{Start: s.now, Now: s.now})
				passed[i%callers]++
			}
		}
		if second < 3 {
			continue
		}
		for i := range callers {
			share := float64(passed[i]) / float64(arrived[i])
			if share <= 0.1 || share >= 0.8 {
				decided++
			}
			if share >= 0.5 {
				turns[i]++
			}
		}
	}
	assert.Greater(t, float64(decided)/(60*callers), 0.85)
	for i, n := range turns {
		assert.Greater(t, n, 10, "caller %d", i) // 20 on average: a caller with few others beside it is served more often
		assert.Less(t, n, 40, "caller %d", i)
	}
}

// Whatever has come: when a call passes, a more important one of the same caller would have
// passed in its place.
func TestMoreImportantCallPassesWhereALessImportantOneDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := rapid.SampledFrom([]adaptive.Rule{
			{Strategy: adaptive.Threshold, Concurrency: 10},
			{Strategy: adaptive.Threshold, QPS: 50},
			{Strategy: adaptive.Threshold, CPU: 0.5, Concurrency: 30},
		}).Draw(rt, "rule")
		s := newScene(t, r)
		for range rapid.IntRange(1, 4).Draw(rt, "phases") {
			s.signal(rule.SignalCPU, rapid.Float64Range(0, 1).Draw(rt, "cpu"))
			s.run(300*time.Millisecond, nil, stream{
				rate:     rapid.Float64Range(10, 2000).Draw(rt, "rate"),
				priority: rapid.SampledFrom([]rule.Priority{-2, -1, 0, 1, 2}).Draw(rt, "priority"),
				callers:  rapid.IntRange(0, 20).Draw(rt, "callers"),
				takes:    time.Duration(rapid.IntRange(1, 200).Draw(rt, "ms")) * time.Millisecond,
			})
		}
		for range rapid.IntRange(0, 12).Draw(rt, "under way") {
			s.limiter.Acquire(s.request(rule.PriorityCritical, ""))
		}
		caller := rapid.StringMatching(`[a-z]{0,2}`).Draw(rt, "caller")
		passed := true
		for _, p := range rule.Priorities() {
			ticket, decision := s.limiter.Acquire(s.request(p, caller))
			if decision == rule.Pass {
				s.limiter.GiveBack(s.now, ticket, 1)
				if !passed {
					rt.Fatalf("%v passes and a more important call does not", p)
				}
			}
			passed = decision == rule.Pass
		}
	})
}

func TestNothingIsShedWithoutOverload(t *testing.T) {
	t.Parallel()
	for name, r := range refusingStrategies() {
		s := newScene(t, r)
		s.signal(rule.SignalCPU, 0.5)
		out := s.run(30*time.Second, nil, stream{rate: 500, takes: 10 * time.Millisecond})
		assert.InDelta(t, 1, out[0].share(), 0, name)
		assert.InDelta(t, 1, s.gauge("passing_share"), 0, name)
		assert.False(t, math.IsNaN(s.gauge("in_flight")), name)
	}
}
