package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
)

// heir returns a gate with a window of its own that inherits from that of another.
func heir(t *testing.T, from *gate, rule flow.Rule) *gate {
	t.Helper()
	g := newGate(t, rule)
	g.now = from.now
	g.window = flow.NewWindow(g.compiled, g.now)
	g.window.Inherit(from.window, g.now)
	return g
}

func TestInheritedWindowHoldsWhatTheSharedOneHolds(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]flow.Rule{"sliding": reject(10), "fixed": fixed(10, time.Second), "fractional": reject(10.5)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shared := newGate(t, rule)
			assert.Equal(t, 4, shared.pass(4))
			shared.wait(300 * time.Millisecond)
			assert.Equal(t, 3, shared.pass(3))
			own := heir(t, shared, rule)
			assert.Equal(t, 3, own.pass(9))
			assert.Equal(t, 3, shared.pass(9), "the shared one goes on by itself")
			own.wait(time.Second)
			assert.GreaterOrEqual(t, own.pass(20), 10)
		})
	}
}

func TestInheritedWindowHasSpentItsCarriedToken(t *testing.T) {
	t.Parallel()
	shared := newGate(t, reject(0.1))
	assert.Equal(t, 1, shared.pass(3))
	own := heir(t, shared, reject(0.1))
	assert.Equal(t, 0, own.pass(3))
	own.wait(10 * time.Second)
	assert.Equal(t, 1, own.pass(3))
}

func TestInheritedWindowIsCold(t *testing.T) {
	t.Parallel()
	rule := reject(300)
	rule.WarmUp.Period = 10 * time.Second
	shared := newGate(t, rule)
	shared.offer(1000, 30)
	shared.wait(time.Second)
	assert.Greater(t, shared.pass(1000), 150, "warm")
	own := heir(t, shared, rule)
	assert.Equal(t, 0, own.pass(10))
	own.wait(2 * time.Second)
	assert.InDelta(t, 100, own.pass(1000), 1, "cold")
}

func TestInheritedWindowGoesOverToItsOwnRule(t *testing.T) {
	t.Parallel()
	shared := newGate(t, reject(5))
	assert.Equal(t, 5, shared.pass(9))
	own := newGate(t, reject(5))
	own.compiled = flow.Compile(flow.Kind().WithDefaults(flow.Rule{Resource: "r", Limit: 7, Buckets: 2}), 99)
	own.window = flow.NewWindow(own.compiled, own.now)
	own.window.Inherit(shared.window, own.now)
	assert.Equal(t, 2, own.pass(9))
}
