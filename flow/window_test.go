package flow_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

func TestWindowTimelines(t *testing.T) {
	t.Parallel()
	type step struct {
		at    float64 // seconds
		calls int
		want  int // of them pass
	}
	tests := map[string]struct {
		rule  flow.Rule
		steps []step
	}{
		"a full window frees up bucket by bucket": {reject(5), []step{
			{0.05, 2, 2}, {0.15, 9, 3}, {0.95, 1, 0}, {1.0, 9, 2}, {1.1, 9, 3}, {1.2, 9, 0},
		}},
		"buckets are those of the calendar, not of the first call": {reject(5), []step{
			{0.99, 5, 5}, {1.89, 1, 0}, {1.9, 9, 5},
		}},
		"one bucket is a fixed window": {flow.Rule{Resource: "r", Limit: 5, Buckets: 1}, []step{
			{0.99, 9, 5}, {1.0, 9, 5}, {1.99, 9, 0}, {2.0, 9, 5},
		}},
		"a long idle window is empty": {reject(5), []step{
			{0, 9, 5}, {86_400, 9, 5},
		}},
		"a window of a minute": {flow.Rule{Resource: "r", Limit: 5, Window: time.Minute}, []step{
			{0, 9, 5}, {59.9, 1, 0}, {60, 9, 5},
		}},
		"strict frees up one bucket later": {flow.Rule{Resource: "r", Limit: 5, Strict: true}, []step{
			{0.05, 9, 5}, {1.0, 1, 0}, {1.09, 1, 0}, {1.1, 9, 5},
		}},
		"a limit below one begins with a token": {reject(0.5), []step{
			{0, 9, 1}, {1.9, 9, 0}, {2, 9, 1}, {3.9, 9, 0}, {4, 9, 1}, {60, 9, 1}, {60.9, 9, 0},
		}},
		"a fraction adds up": {reject(2.5), []step{
			{0, 9, 2}, {1, 9, 2}, {2, 9, 3}, {3, 9, 2}, {4, 9, 3},
		}},
		"nothing": {reject(0), []step{
			{0, 9, 0}, {0.5, 9, 0}, {100, 9, 0},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t, test.rule)
			for _, s := range test.steps {
				g.moveTo(seconds(s.at))
				assert.Equal(t, s.want, g.pass(s.calls), "at %v s", s.at)
			}
		})
	}
}

func TestWindowWeighsTokens(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(10))
	assert.Equal(t, rule.Pass, g.take(7))
	assert.Equal(t, rule.Block, g.take(4), "one token too many")
	assert.Equal(t, rule.Pass, g.take(3), "a refusal takes nothing")
	assert.Equal(t, rule.Block, g.take(1))
	g.moveTo(time.Second)
	assert.Equal(t, rule.Block, g.take(11), "more than there ever is")
	assert.Equal(t, rule.Pass, g.take(10))
}

func TestWindowOfTheLargestLimit(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(flow.MaxLimit))
	assert.Equal(t, rule.Block, g.take(math.MaxInt32))
	assert.Equal(t, rule.Pass, g.take(flow.MaxLimit-1))
	assert.Equal(t, 1, g.pass(3))
	g.change(func(r *flow.Rule) { r.Limit = 1 })
	assert.Equal(t, rule.Block, g.take(1))
	g.moveTo(time.Second)
	assert.Equal(t, 1, g.pass(3))
}

func TestWindowBeforeTheEpochOfClocks(t *testing.T) {
	t.Parallel()
	fine := warming()
	fine.WarmUp.Step = 100 * time.Millisecond
	for name, rule := range map[string]flow.Rule{"plain": reject(333), "strict": {Resource: "r", Limit: 333, Strict: true}, "warming up": fine} {
		compiled := compile(t, rule, 1)
		now := clock.Instant(0).Add(-time.Hour)
		w := flow.NewWindow(compiled, now)
		for range 20 {
			passed := passUntilRefused(w, compiled, now)
			assert.InDelta(t, 333, passed, 20, name)
			now = now.Add(2 * time.Second)
		}
	}
}

func TestCompiledRuleReturnsItsRule(t *testing.T) {
	t.Parallel()
	rule := flow.Kind().WithDefaults(reject(5))
	assert.Equal(t, rule, flow.Compile(rule, 1).Rule())
}

func TestWindowTakeAllocatesNothing(t *testing.T) {
	for name, limit := range map[string]float64{"passed": flow.MaxLimit, "refused": 0, "both": 3, "warm-up": 2.5} {
		r := reject(limit)
		if name == "warm-up" {
			r.WarmUp.Period = 10 * time.Second
		}
		g := newGate(t, r)
		assert.Zero(t, testing.AllocsPerRun(1000, func() {
			g.wait(7 * time.Millisecond)
			if g.take(1) == rule.Block {
				g.window.RetryAfter(g.now, 1)
			}
			if g.take(1) == rule.Pass {
				g.window.GiveBack(g.compiled, g.now, 1)
			}
		}), name)
	}
}
