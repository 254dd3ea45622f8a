package core_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// A cold resource whose limit is below one token a window is called rarely, so that
// it is forgotten between its calls.
func TestARareCallUnderAPatternThatWarmsUpPasses(t *testing.T) {
	for _, rule := range []flow.Rule{
		{Limit: 2},
		{Limit: 1},
		{Limit: 0.5},
		{Limit: 0.05},
		{Limit: 2, Window: time.Minute},
		{Limit: 1.5, Window: time.Minute, Algorithm: flow.FixedWindow},
		{Limit: 2, Algorithm: flow.Throttle},
		{Limit: 2, Algorithm: flow.TokenBucket},
	} {
		rule.Match, rule.WarmUp.Period = "*", 10*time.Second
		e, c := newEngine(t, rule)
		passed := 0
		for range 100 {
			passed += enter(e, "rare", 1)
			c.Advance(time.Minute)
			e.Snapshot()
			c.Advance(time.Minute)
			e.Snapshot()
		}
		assert.Equal(t, 100, passed, "%+v", rule)
	}
}

// A call that is larger than the cold limit comes rarely, so that its resource would be
// forgotten before the bucket ends in which it was refused.
func TestALargeCallUnderAPatternWithALongWindowThatWarmsUpPasses(t *testing.T) {
	for _, algorithm := range []flow.Algorithm{flow.FixedWindow, flow.SlidingWindow} {
		e, c := newEngine(t, flow.Rule{
			Match: "*", Limit: 100, Window: time.Hour, Algorithm: algorithm,
			WarmUp: flow.WarmUp{Period: 10 * time.Minute, ColdFactor: 10, Step: time.Minute},
		})
		passed := 0
		for range 24 * 20 {
			passed += enter(e, "rare", 1, core.Tokens(50))
			c.Advance(90 * time.Second)
			e.Snapshot()
			c.Advance(90 * time.Second)
		}
		const tokens, hours, coldRate = 50, 24, 10
		assert.GreaterOrEqual(t, passed*tokens, (hours-1)*coldRate, algorithm)
	}
}

// The time after a call was refused is not idle, whether or not the resource is looked at.
func TestAResourceThatHasRefusedLatelyIsNotForgotten(t *testing.T) {
	for _, looks := range []bool{false, true} {
		e, c := newEngine(t, flow.Rule{
			Match: "*", Limit: 0.05, WarmUp: flow.WarmUp{Period: time.Second, ColdFactor: 10},
		})
		var passed []int
		for _, pause := range []time.Duration{120 * time.Second, 120 * time.Second, 59 * time.Second, 0} {
			passed = append(passed, enter(e, "rare", 1))
			c.Advance(pause)
			if looks {
				e.Snapshot()
			}
		}
		assert.Equal(t, []int{1, 0, 1, 1}, passed, "warm within the minute, looked at: %v", looks)
	}
}

// However far apart the calls are and whenever the resource is looked at, and forgotten,
// they pass as soon as the cold rate allows, and no more than the limit does, but for the
// first.
func TestRareCallsPassWhenTheColdRateAllows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := flow.Rule{
			Match: "*", Limit: rapid.Float64Range(0.001, 2).Draw(t, "limit"),
			Window: rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, time.Minute}).Draw(t, "window"),
		}
		factor := rapid.Float64Range(1.5, 50).Draw(t, "cold factor")
		rule.WarmUp = flow.WarmUp{Period: 10 * time.Second, ColdFactor: factor}
		c := clock.NewVirtual(begin)
		e := core.New(core.Config{Clock: c, Logger: quiet})
		defer e.Close()
		require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{rule}}))
		start, passed, calls := c.Now(), 0, rapid.IntRange(1, 100).Draw(t, "calls")
		apart := time.Duration(rapid.Int64Range(int64(time.Second), int64(10*time.Minute)).Draw(t, "apart"))
		looks := rapid.IntRange(1, 5).Draw(t, "looks")
		for range calls {
			passed += enter(e, "rare", 1)
			for range looks {
				c.Advance(apart / time.Duration(looks))
				e.Snapshot()
			}
		}
		windows := float64(c.Now().Sub(start)) / float64(rule.Window)
		assert.LessOrEqual(t, float64(passed), 2+windows*rule.Limit, "%+v", rule)
		// A token is there after so long at the cold rate; the first call from then on passes.
		tokenEvery := float64(rule.Window) * factor / rule.Limit
		assert.GreaterOrEqual(t, passed, calls/int(math.Ceil(tokenEvery/float64(apart)+1)), "%+v", rule)
	})
}

// rareRule draws a rule for [TestForgettingChangesNoDecision]. How a window that is
// longer than the steps of its warm-up gets warm depends on when it is looked at, and
// what a resource that warms up loses of a token changes all that follows, so that
// decisions of such rules cannot be compared one by one.
func rareRule(t *rapid.T) flow.Rule {
	return rapid.Custom(anyRareRule).Filter(func(r flow.Rule) bool {
		return r.WarmUp.Period == 0 || !savesBesideWholeTokens(r)
	}).Draw(t, "rule")
}

func anyRareRule(t *rapid.T) flow.Rule {
	rule := flow.Rule{
		Name: "r", Limit: rapid.SampledFrom([]float64{0.001, 0.05, 0.3, 0.5, 1, 2, 2.5, 7, 30}).Draw(t, "limit"),
		Window: rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute}).Draw(t, "window"),
	}
	if rapid.Bool().Draw(t, "warms up") {
		rule.Window = min(rule.Window, time.Second)
		rule.WarmUp = flow.WarmUp{
			Period:     rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, time.Minute}).Draw(t, "period"),
			ColdFactor: rapid.SampledFrom([]float64{1.5, 3, 10, 100}).Draw(t, "cold factor"),
		}
	}
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 1:
		rule.Algorithm = flow.FixedWindow
	case 2:
		rule.Algorithm = flow.Throttle
	case 3:
		rule.Algorithm = flow.TokenBucket
	}
	return rule
}

// savesBesideWholeTokens says whether a window of a rule lets whole tokens pass even when
// it is cold, and saves fractions of others: these are lost when it is forgotten.
func savesBesideWholeTokens(r flow.Rule) bool {
	if limiterOf(r) != byWindow || r.WarmUp.Period == 0 && r.Limit == math.Trunc(r.Limit) {
		return false
	}
	return r.Limit/max(1, r.WarmUp.ColdFactor) >= 1
}

// A resource that is forgotten again and again lets pass what one does that never is,
// call by call.
func TestForgettingChangesNoDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := rareRule(t)
		pattern, exact := rule, rule
		pattern.Match, exact.Resource = "*", "n"
		c := clock.NewVirtual(begin)
		forgets := core.New(core.Config{Clock: c, Logger: quiet})
		defer forgets.Close()
		keeps := core.New(core.Config{Clock: c, Logger: quiet})
		defer keeps.Close()
		require.NoError(t, forgets.Load(rules.Set{Flow: []flow.Rule{pattern}}))
		require.NoError(t, keeps.Load(rules.Set{Flow: []flow.Rule{exact}}))

		lost := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			for range rapid.SampledFrom([]int{1, 1, 1, 2, 9, 70}).Draw(t, "calls") {
				lost += enter(keeps, "n", 1) - enter(forgets, "n", 1)
				if !savesBesideWholeTokens(rule) {
					require.Zero(t, lost, "fewer pass than without forgetting, or more if below zero: %+v", rule)
				}
				// A token comes later if it is saved anew, and may come after another one lapsed.
				require.GreaterOrEqual(t, lost, -1, "more pass than without forgetting: %+v", rule)
			}
			c.Advance(rapid.SampledFrom([]time.Duration{
				time.Millisecond, 300 * time.Millisecond, time.Second, 59 * time.Second, time.Minute, 61 * time.Second, 2 * time.Minute, time.Hour,
			}).Draw(t, "pause"))
			if rapid.Bool().Draw(t, "looks") {
				forgets.Snapshot()
			}
		}
	})
}
