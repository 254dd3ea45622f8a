package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

func TestWindowKeepsItsWarmthOverAChangedRule(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(r *flow.Rule)
		want   int // in the second after eleven at full load
	}{
		"a thousandth more":   {func(r *flow.Rule) { r.Limit = 1001 }, 1001},
		"ten times the limit": {func(r *flow.Rule) { r.Limit = 10_000 }, 10_000},
		"a tenth":             {func(r *flow.Rule) { r.Limit = 100 }, 100},
		"another geometry":    {func(r *flow.Rule) { r.Buckets = 5 }, 1000},
		"a finer step":        {func(r *flow.Rule) { r.WarmUp.Step = 500 * time.Millisecond }, 1000},
		"no warm-up":          {func(r *flow.Rule) { r.WarmUp = flow.WarmUp{} }, 1000},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t, warming())
			g.offer(2000, 12)
			g.change(test.change)
			g.offer(20_000, 1) // what passed under the old rule leaves the window
			assert.InDelta(t, test.want, g.offer(20_000, 1)[0], float64(test.want)/50)
		})
	}
}

func TestWindowWithAFineStepObeysALoweredLimit(t *testing.T) {
	t.Parallel()
	rule := warming()
	rule.WarmUp.Step = 100 * time.Millisecond
	g := newGate(t, rule)
	g.offer(2000, 20)
	g.change(func(r *flow.Rule) { r.Limit = 100 })
	assert.LessOrEqual(t, sum(g.offer(2000, 1)), 100)
	assert.LessOrEqual(t, sum(g.offer(2000, 1)), 100)
	g.change(func(r *flow.Rule) { r.Limit = 1000 })
	g.offer(2000, 1)
	assert.GreaterOrEqual(t, sum(g.offer(2000, 1)), 950)
}

// What passed under a higher limit is more than the lower one's bucket holds:
// it must not drain that at once.
func TestWindowThatIsColdStaysSoUnderALowerLimit(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{100 * time.Millisecond, time.Second} {
		rule := warming()
		rule.WarmUp.Step = step
		g := newGate(t, rule)
		g.offer(2000, 1)
		g.change(func(r *flow.Rule) { r.Limit = 10 })
		g.offer(2000, 2)
		limit, _, _ := g.window.Status(g.now)
		assert.Less(t, limit, 5.0, "step %v", step)
	}
}

func TestWindowStaysHalfWarmOverAChangedLimit(t *testing.T) {
	t.Parallel()
	for _, limit := range []float64{1001, 2000, 500} {
		changed, kept := newGate(t, warming()), newGate(t, warming())
		kept.offer(2000, 6)
		changed.offer(2000, 6)
		changed.change(func(r *flow.Rule) { r.Limit = limit })
		want := float64(kept.offer(5000, 2)[1]) * limit / 1000
		assert.InEpsilon(t, want, changed.offer(5000, 2)[1], 0.05, "limit %v", limit)
	}
}

// A limit of 0 has no share of itself: the window must not compute one when it takes
// over, or the limits of later versions would not be numbers.
func TestFractionalLimitPassesAgainAfterAWarmingLimitOfZeroTookOver(t *testing.T) {
	t.Parallel()
	counted := compile(t, flow.Rule{Resource: "r", Limit: 8, Window: time.Minute, Algorithm: flow.Throttle}, 1)
	queue := flow.NewQueue(counted, epoch)
	_, decision := queue.Take(counted, epoch, 1)
	require.Equal(t, rule.Pass, decision)

	blocked := compile(t, flow.Rule{Resource: "r", Window: time.Minute, WarmUp: flow.WarmUp{Period: 10 * time.Minute}}, 2)
	window := flow.NewWindow(blocked, epoch)
	window.Follow(queue)
	require.Equal(t, rule.Block, window.Take(blocked, epoch, 1))
	limit, remaining, _ := window.Status(epoch)
	assert.Zero(t, limit)
	assert.Zero(t, remaining)

	half := compile(t, flow.Rule{Resource: "r", Limit: 0.5, Window: 10 * time.Millisecond}, 3)
	require.Equal(t, rule.Block, window.Take(half, epoch, 1))
	wait := window.RetryAfter(epoch, 1)
	assert.Equal(t, 20*time.Millisecond, wait, "the token that passed takes two windows")
	assert.Equal(t, rule.Pass, window.Take(half, epoch.Add(wait), 1))
}
