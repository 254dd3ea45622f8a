package flow_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// warming returns a rule of 1000 per second that warms up in ten seconds.
func warming() flow.Rule {
	return flow.Rule{Resource: "r", Limit: 1000, WarmUp: flow.WarmUp{Period: 10 * time.Second}}
}

func TestWindowWarmsUpByTheVectors(t *testing.T) {
	t.Parallel()
	for offered, want := range map[int][]int{
		2000: {333, 348, 366, 387, 412, 442, 479, 528, 594, 692, 856, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000},
		500:  {333, 348, 366, 387, 412, 442, 479, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500},
		300:  {300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300},
	} {
		g := newGate(t, warming())
		for second, passed := range g.offer(offered, len(want)) {
			assert.InDelta(t, want[second], passed, 2, "%d offered, second %d", offered, second)
		}
	}
}

// No second, of whatever phase, passes more than the effective limits it spans.
func TestWarmingWindowStaysWithinItsLimitFromAnyPhase(t *testing.T) {
	t.Parallel()
	limits := []int{334, 350, 368, 389, 414}
	for phase := range 10 {
		g := newGate(t, warming())
		g.moveTo(time.Duration(phase) * 100 * time.Millisecond)
		for second, passed := range g.offer(2000, 4) {
			assert.LessOrEqual(t, passed, limits[second+1], "phase %d, second %d", phase, second)
			assert.GreaterOrEqual(t, passed, 300, "phase %d, second %d", phase, second)
		}
	}
}

func TestWindowWithAFineStepFollowsTheIdealCurve(t *testing.T) {
	t.Parallel()
	ideal := []int{341, 358, 378, 402, 431, 467, 514, 579, 677, 854, 1000, 1000, 1000, 1000}
	for name, test := range map[string]struct {
		window    time.Duration
		tolerance float64
	}{
		"window of a step":   {100 * time.Millisecond, 0.04},
		"window of a second": {time.Second, 0.04},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := warming()
			rule.Window, rule.Limit = test.window, 1000*test.window.Seconds()
			rule.WarmUp.Step = 100 * time.Millisecond
			for second, passed := range newGate(t, rule).offer(2000, len(ideal)) {
				assert.InEpsilon(t, ideal[second], passed, test.tolerance, "second %d", second)
			}
		})
	}
}

func TestTwoPerSecondWarmUp(t *testing.T) {
	t.Parallel()
	rule := reject(2)
	rule.WarmUp.Period = 10 * time.Second
	g := newGate(t, rule)
	assert.InDelta(t, 2.5, sum(g.offer(1000, 3)), 0.5, "0.667 per second at first, soon more")
	g.offer(1000, 12)
	assert.InDelta(t, 20, sum(g.offer(1000, 10)), 1, "2 per second when warm")
}

// Any rule warms up under full load: within a quarter more than its period,
// three windows, and the time that three tokens take at the cold rate. Then
// its full rate passes.
func TestWindowWarmsUpUnderFullLoad(t *testing.T) {
	t.Parallel()
	type variant struct {
		window time.Duration
		step   time.Duration
		strict bool
	}
	for _, v := range []variant{
		{time.Second, time.Second, false},
		{time.Second, 100 * time.Millisecond, false},
		{time.Second, 10 * time.Second, false},
		{100 * time.Millisecond, time.Second, false},
		{700 * time.Millisecond, time.Second, false},
		{10 * time.Second, time.Second, false},
		{time.Minute, time.Second, false},
		{time.Second, time.Second, true},
		{time.Second, 100 * time.Millisecond, true},
		{10 * time.Second, time.Second, true},
	} {
		for _, perSecond := range []float64{0.1, 0.5, 2, 3, 10, 100} {
			for _, coldFactor := range []float64{1.1, 3, 10} {
				rule := flow.Rule{
					Resource: "r", Limit: perSecond * v.window.Seconds(), Window: v.window, Strict: v.strict,
					WarmUp: flow.WarmUp{Period: time.Minute, ColdFactor: coldFactor, Step: v.step},
				}
				t.Run(fmt.Sprintf("%v per %v, factor %v, step %v, strict %v", rule.Limit, v.window, coldFactor, v.step, v.strict),
					func(t *testing.T) {
						t.Parallel()
						assertWarmsUp(t, rule, perSecond)
					})
			}
		}
	}
}

func assertWarmsUp(t *testing.T, rule flow.Rule, perSecond float64) {
	g := newGate(t, rule)
	offered := max(20, int(2*perSecond))
	window := int(math.Ceil(rule.Window.Seconds()))
	warmAfter := 75 + 3*window + int(3*rule.WarmUp.ColdFactor/perSecond)
	g.offer(offered, warmAfter)

	share := 1.0
	if rule.Strict {
		share = float64(g.rule.Buckets) / float64(g.rule.Buckets+1)
	}
	const windows = 11 // of strict rules, a whole number of times what they hold over
	span := windows * max(window, int(math.Ceil(4/perSecond)))
	want := share * perSecond * float64(span)
	assert.GreaterOrEqual(t, sum(g.offer(offered, span)), int(0.95*want)-1, "of %v", want)
}

func TestWindowCoolsDown(t *testing.T) {
	t.Parallel()
	g := newGate(t, warming())
	g.offer(2000, 20)
	g.wait(3 * time.Second)
	warm := g.offer(2000, 1)[0]
	assert.Greater(t, warm, 333, "a short pause does not cool it down all the way")
	g.offer(2000, 20)
	g.wait(time.Minute)
	assert.InDelta(t, 333, g.offer(2000, 1)[0], 2)
}

func TestWindowWithAFineStepCoolsDown(t *testing.T) {
	t.Parallel()
	rule := warming()
	rule.WarmUp.Step = 100 * time.Millisecond
	g := newGate(t, rule)
	g.offer(2000, 20)
	g.wait(time.Minute)
	assert.LessOrEqual(t, sum(g.offer(2000, 1)), 360, "the effective limits of a minute ago are over")
}

func TestWindowGivenBackDoesNotWarm(t *testing.T) {
	t.Parallel()
	g := newGate(t, warming())
	for range 200 {
		if g.take(1) == rule.Pass {
			g.window.GiveBack(g.compiled, g.now, 1)
		}
		g.wait(100 * time.Millisecond)
	}
	limit, _, _ := g.window.Status(g.now)
	assert.InDelta(t, 1000/3.0, limit, 1)
}

// Every rule that validation lets through has limits that are numbers.
func TestEveryValidWarmUpHasAnEffectiveLimit(t *testing.T) {
	t.Parallel()
	limits := []float64{math.SmallestNonzeroFloat64, 1e-300, 1e-100, 1e-12, 1e-6, 0.1, 1, 1000, flow.MaxLimit}
	factors := []float64{math.Nextafter(1, 2), 1 + 1e-12, 1 + 1e-6, 1.1, 3, 1e6, 1e100, 1e300, math.MaxFloat64}
	for _, limit := range limits {
		for _, factor := range factors {
			for _, period := range []time.Duration{1, time.Second, flow.MaxPeriod} {
				rule := flow.Rule{Resource: "r", Limit: limit, WarmUp: flow.WarmUp{Period: period, ColdFactor: factor}}
				if len(flow.Kind().Faults(rule)) > 0 {
					continue
				}
				g := newGate(t, rule)
				ok := true
				for range 20 {
					g.take(1)
					effective, remaining, reset := g.window.Status(g.now)
					ok = ok && effective >= 0 && effective <= limit*(1+1e-9) && remaining >= 0 && reset >= 0
					g.wait(700 * time.Millisecond)
				}
				assert.True(t, ok, "limit %v, factor %v, period %v", limit, factor, period)
			}
		}
	}
}
