package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

// wouldBlock makes n calls, none of which may be refused, and returns how many
// would have been.
func wouldBlock(t *testing.T, e *core.Engine, n int) (blocked int) {
	t.Helper()
	for range n {
		guard, err := e.Entry(context.Background(), "r")
		require.NoError(t, err)
		if guard.WouldBlock() != nil {
			blocked++
		}
		guard.Exit()
	}
	return blocked
}

func TestAShadowRuleDecidesAndLetsThrough(t *testing.T) {
	for name, rule := range map[string]flow.Rule{
		"window":       {Limit: 3},
		"fixed window": {Limit: 3, Algorithm: flow.FixedWindow},
		"token bucket": {Limit: 3, Algorithm: flow.TokenBucket},
		"throttle":     {Limit: 1, Algorithm: flow.Throttle, MaxWait: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			rule.Name, rule.Resource, rule.Shadow = "shadow", "r", true
			e, c := newEngine(t, rule)
			assert.Equal(t, 7, wouldBlock(t, e, 10))
			c.Advance(3 * time.Second)
			assert.Equal(t, 7, wouldBlock(t, e, 10))

			refusals := e.Resource("r").Snapshot().Rules
			require.Len(t, refusals, 1)
			assert.EqualValues(t, 14, refusals[0].WouldBlock)
			assert.Zero(t, refusals[0].Blocked)
			assert.Zero(t, e.Resource("r").Snapshot().Blocked)
		})
	}
}

func TestAGuardTellsWhichShadowRuleWouldHaveBlocked(t *testing.T) {
	e, _ := newEngine(t,
		flow.Rule{Name: "far", Resource: "r", Limit: 5, Shadow: true},
		flow.Rule{Name: "near", Resource: "r", Limit: 1, Shadow: true},
	)
	assert.Equal(t, 0, wouldBlock(t, e, 1))
	guard, err := e.Entry(t.Context(), "r")
	require.NoError(t, err)
	require.NotNil(t, guard.WouldBlock())
	assert.Equal(t, "near", guard.WouldBlock().Rule)
	assert.Equal(t, time.Second, guard.WouldBlock().RetryAfter)
	assert.Nil(t, new(core.Guard).WouldBlock())
}

func TestShadowsDoNotCountWhatAnotherRuleRefuses(t *testing.T) {
	e, _ := newEngine(t,
		flow.Rule{Name: "shadow", Resource: "r", Limit: 3, Shadow: true},
		flow.Rule{Name: "real", Resource: "r", Limit: 2},
	)
	assert.Equal(t, 2, enter(e, "r", 10))
	assert.Zero(t, e.Resource("r").Snapshot().Rules[1].WouldBlock)
}

func TestAShadowThatGoesLiveKeepsWhatItCounted(t *testing.T) {
	rule := flow.Rule{Resource: "r", Limit: 3, Shadow: true}
	e, _ := newEngine(t, rule)
	assert.Equal(t, 0, wouldBlock(t, e, 2))
	rule.Shadow = false
	load(t, e, rule)
	assert.Equal(t, 1, enter(e, "r", 5))
}

func TestAShadowQueueBesideARealOneDelaysNoCall(t *testing.T) {
	e, _ := newEngine(t,
		flow.Rule{Name: "real", Resource: "r", Limit: 1e9, Algorithm: flow.Throttle, MaxWait: time.Second},
		flow.Rule{Name: "shadow", Resource: "r", Limit: 1, Algorithm: flow.Throttle, MaxWait: time.Hour, Shadow: true},
	)
	assert.Equal(t, 1, enter(e, "r", 1))
	assert.Zero(t, e.Resource("r").Snapshot().Waited)
}

// A shadow makes no call wait, so nobody knows whether a place would have become free
// in time. It must not look as if the rule refused nothing.
func TestShadowCountsCallsThatWouldWaitForAPlace(t *testing.T) {
	e, _ := newEngine(t)
	require.NoError(t, e.Load(rules.Set{Isolation: []isolation.Rule{
		{Resource: "r", Limit: 2, MaxWait: time.Second, MaxQueue: 3, Shadow: true},
	}}))
	var guards []*core.Guard
	for i := range 10 {
		guard, err := e.Entry(t.Context(), "r")
		require.NoError(t, err)
		assert.Equal(t, i >= 2, guard.WouldBlock() != nil, "call %d", i)
		guards = append(guards, &guard)
	}
	of := e.Resource("r").Snapshot().Rules[0]
	assert.EqualValues(t, 8, of.WouldBlock)
	assert.Equal(t, []float64{2, 0, 2, 2, 0, 0}, of.Gauges[:6], "two have places, none waits")
	for _, guard := range guards {
		guard.Exit()
	}
	guard, err := e.Entry(t.Context(), "r")
	require.NoError(t, err)
	assert.Nil(t, guard.WouldBlock(), "all places are free")
	guard.Exit()
}
