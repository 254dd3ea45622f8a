package flow_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/warmup"
)

// naivePasses returns when calls go that all came at the epoch: each follows the
// one before at the effective limit of the second in which that one went.
func naivePasses(r flow.Rule, calls int) (passes []clock.Instant) {
	curve := warmup.NewCurve(r.Limit/r.Window.Seconds(), r.WarmUp.Period, r.WarmUp.ColdFactor, r.WarmUp.Step).JudgedByCalls()
	bucket := warmup.NewBucket(curve, curve.Step(epoch))
	elapsed, passAt := 0.0, epoch // nanoseconds
	for range calls {
		passes = append(passes, passAt)
		bucket.Sync(curve, curve.Step(passAt))
		bucket.AddPassed(curve.Step(passAt), 1)
		elapsed += 1e9 / bucket.Limit(curve)
		passAt = epoch.Add(time.Duration(math.Ceil(elapsed - 1e-4)))
		bucket.KeepBusyUntil(curve.Step(passAt)) // the next one does
	}
	return passes
}

// perSecond counts instants by the second since the epoch.
func perSecond(instants []clock.Instant, seconds int) []int {
	counts := make([]int, seconds)
	for _, at := range instants {
		if second := int(at.Sub(epoch) / time.Second); second < seconds {
			counts[second]++
		}
	}
	return counts
}

// passesOf lets calls, that all come at the epoch, pass in order.
func passesOf(t *testing.T, rule flow.Rule, calls int, within time.Duration) (passes []clock.Instant) {
	l := newTestQueue(t, rule)
	l.call(calls)
	l.moveTo(within)
	for _, p := range l.passes {
		assert.Equal(t, p.turn.Time(), epoch.Add(p.at))
		passes = append(passes, p.turn.Time())
	}
	return passes
}

func TestQueueWarmsUp(t *testing.T) {
	t.Parallel()
	rule := throttle(1000, flow.MaxMaxWait)
	rule.WarmUp.Period = 10 * time.Second
	passed := perSecond(passesOf(t, rule, 12_000, 15*time.Second), 14)
	for second, want := range []int{333, 348, 366, 387, 412, 442, 479, 528, 594, 692, 856, 1000, 1000, 1000} {
		assert.InDelta(t, want, passed[second], 3, "second %d", second)
	}
}

func TestQueueWithAFineStepFollowsTheIdealCurve(t *testing.T) {
	t.Parallel()
	rule := throttle(1000, flow.MaxMaxWait)
	rule.WarmUp = flow.WarmUp{Period: 10 * time.Second, Step: 100 * time.Millisecond}
	passed := perSecond(passesOf(t, rule, 12_000, 15*time.Second), 14)
	for second, want := range []int{341, 358, 378, 402, 431, 467, 514, 579, 677, 854, 1000, 1000} {
		assert.InEpsilon(t, want, passed[second], 0.04, "second %d", second)
	}
}

// At two per second and a cold factor of three, no whole token passes in a
// second at the cold rate.
func TestQueueWarmsUpAtTwoPerSecond(t *testing.T) {
	t.Parallel()
	rule := throttle(2, flow.MaxMaxWait)
	rule.WarmUp.Period = 10 * time.Second
	passes := passesOf(t, rule, 100, time.Minute)
	assert.Len(t, passes, 100)
	assert.Equal(t, 1500*time.Millisecond, passes[1].Sub(passes[0]), "cold")
	assert.Equal(t, 500*time.Millisecond, passes[99].Sub(passes[98]), "warm")
	for second, passed := range perSecond(passes, 40)[15:] {
		assert.Equal(t, 2, passed, "second %d", second+15)
	}
}

func TestQueueCoolsDown(t *testing.T) {
	t.Parallel()
	for _, limit := range []float64{2, 1000} {
		rule := throttle(limit, flow.MaxMaxWait)
		rule.WarmUp.Period = 10 * time.Second
		l := newTestQueue(t, rule)
		l.call(int(limit) * 20)
		l.moveTo(time.Hour)
		first := len(l.passes)
		l.call(2)
		l.moveTo(2 * time.Hour)
		assert.InEpsilon(t, 3/limit, (l.passes[first+1].at - l.passes[first].at).Seconds(), 0.001, "limit %v", limit)
	}
}

func TestQueueKeepsItsWarmthOverAChangedLimit(t *testing.T) {
	t.Parallel()
	rule := throttle(1000, flow.MaxMaxWait)
	rule.WarmUp.Period = 10 * time.Second
	l := newTestQueue(t, rule)
	l.call(20_000)
	l.moveTo(15 * time.Second)
	l.change(func(r *flow.Rule) { r.Limit = 1001 })
	before := len(l.passes)
	l.moveTo(16 * time.Second)
	assert.InDelta(t, 1001, len(l.passes)-before, 2)
	l.change(func(r *flow.Rule) { r.Limit = 10 })
	before = len(l.passes)
	l.moveTo(26 * time.Second)
	assert.InDelta(t, 100, len(l.passes)-before, 2)
}

// Under full load calls follow the effective limit of the second, to the nanosecond,
// whatever the rule.
func TestWarmingQueueBehavesLikeItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule := throttle(rapid.Float64Range(0.2, 50).Draw(t, "limit"), flow.MaxMaxWait)
		rule.WarmUp = flow.WarmUp{
			Period:     rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, time.Minute}).Draw(t, "period"),
			ColdFactor: rapid.Float64Range(1.1, 10).Draw(t, "cold factor"),
			Step:       rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second}).Draw(t, "step"),
		}
		const calls = 200
		want := naivePasses(flow.Kind().WithDefaults(rule), calls)
		l := newTestQueue(t, rule)
		l.call(calls)
		l.moveTo(24 * time.Hour)
		require.Len(t, l.passes, calls)
		for i, p := range l.passes {
			require.InDelta(t, want[i].Sub(epoch), p.at, 10, "pass %d", i)
		}
	})
}

// Heavy calls warm a resource no less than light ones do.
func TestQueueWarmsUpUnderHeavyCalls(t *testing.T) {
	t.Parallel()
	for _, weight := range []int32{1, 3, 10} {
		rule := throttle(10, flow.MaxMaxWait)
		rule.WarmUp.Period = 10 * time.Second
		l := newTestQueue(t, rule)
		for range 600 / weight {
			l.arrive(weight)
		}
		l.moveTo(time.Minute)
		last := len(l.passes) - 1
		spacing := l.passes[last].at - l.passes[last-1].at
		assert.InEpsilon(t, float64(weight)/10, spacing.Seconds(), 0.01, "%d tokens each", weight)
	}
}
