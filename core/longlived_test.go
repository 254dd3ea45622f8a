package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// longLivedSet has one resource for each way of a call through the engine.
func longLivedSet() (set rules.Set, resources []string) {
	set = rules.Set{
		Flow: []flow.Rule{
			{Resource: "window", Limit: 1e6},
			{Resource: "queue", Limit: 1e6, Algorithm: flow.Throttle},
			{Resource: "shadow", Limit: 1e6, Shadow: true},
			{Resource: "several", Limit: 1e6},
		},
		Isolation: []isolation.Rule{
			{Resource: "place", Limit: 1},
			{Resource: "several", Limit: 1},
		},
		Breaker: []breaker.Rule{
			{Resource: "slow", Strategy: breaker.SlowRatio, SlowAfter: time.Second, Threshold: 0.1, MinCalls: 1},
			{Resource: "several", Strategy: breaker.SlowRatio, SlowAfter: time.Second, Threshold: 0.1, MinCalls: 1},
		},
	}
	return set, []string{"none", "window", "queue", "shadow", "place", "slow", "several"}
}

// The two ways to say that a call is long-lived: when it enters, and later.
func longLivedWays() map[string]func(e *core.Engine, resource string) (*core.Guard, error) {
	return map[string]func(e *core.Engine, resource string) (*core.Guard, error){
		"option": func(e *core.Engine, resource string) (*core.Guard, error) {
			guard, err := e.Entry(context.Background(), resource, core.LongLived())
			return &guard, err
		},
		"mark": func(e *core.Engine, resource string) (*core.Guard, error) {
			guard, err := e.Entry(context.Background(), resource)
			guard.MarkLongLived()
			return &guard, err
		},
	}
}

func enterShort(e *core.Engine, resource string) (*core.Guard, error) {
	guard, err := e.Entry(context.Background(), resource)
	return &guard, err
}

func TestLongLivedCallHasNoResponseTime(t *testing.T) {
	set, resources := longLivedSet()
	for way, enter := range longLivedWays() {
		for _, resource := range resources {
			t.Run(way+"/"+resource, func(t *testing.T) {
				e, c := newEngine(t)
				require.NoError(t, e.Load(set))
				for range 3 { // what was taken is given back
					guard, err := enter(e, resource)
					require.NoError(t, err)
					assert.EqualValues(t, 1, e.Resource(resource).Snapshot().InFlight)
					c.Advance(time.Hour)
					guard.Exit()
					guard.Exit()
					guard.MarkLongLived()
				}
				s := e.Resource(resource).Snapshot()
				assert.Zero(t, s.InFlight)
				assert.EqualValues(t, 3, s.Completed)
				assert.Zero(t, s.ResponseTime)
				assert.Zero(t, s.ResponseTimes.Quantile(1))
			})
		}
	}
}

func TestLongLivedCallCanFail(t *testing.T) {
	for way, enter := range longLivedWays() {
		e, _ := newEngine(t)
		require.NoError(t, e.Load(rules.Set{Breaker: []breaker.Rule{{Resource: "r", Threshold: 1, MinCalls: 1}}}))
		guard, err := enter(e, "r")
		require.NoError(t, err)
		guard.MarkFailed()
		guard.MarkLongLived()
		guard.Exit()
		assert.EqualValues(t, 1, e.Resource("r").Snapshot().Failed, way)
		_, err = e.Entry(context.Background(), "r")
		require.ErrorIs(t, err, core.ErrBlocked, "%s: the breaker is open", way)
	}
}

func TestLimitersLearnThatACallIsLongLived(t *testing.T) {
	for way, enter := range longLivedWays() {
		for count := 1; count <= 10; count++ { // in the guard, in a record, beyond its few slots
			e, _ := newEngine(t)
			limiters := make([]*finisher, count)
			imposed := make([]core.Imposed, count)
			for i := range limiters {
				limiters[i] = new(finisher)
				imposed[i] = toyRule(string(rune('a'+i)), limiters[i])
			}
			e.Impose("r", imposed...)
			for _, isLong := range []bool{true, false} {
				enterNow := enter
				if !isLong {
					enterNow = enterShort // with the record of the one before
				}
				guard, err := enterNow(e, "r")
				require.NoError(t, err)
				guard.Settle(7)
				guard.Exit()
				for _, l := range limiters {
					assert.Equal(t, isLong, l.exits[len(l.exits)-1].LongLived)
					assert.Equal(t, way == "option" && isLong, l.calls[len(l.calls)-1].LongLived())
					assert.Zero(t, l.held())
				}
			}
		}
	}
}

func TestLongLivedCallsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	set, resources := longLivedSet()
	e, c := newEngine(t)
	require.NoError(t, e.Load(set))
	for _, resource := range resources {
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			c.Advance(time.Millisecond)
			guard, _ := e.Entry(context.Background(), resource, core.LongLived(), core.Priority(rule.PriorityHigh))
			guard.Exit()
		}), resource)
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			c.Advance(time.Millisecond)
			guard, _ := e.Entry(context.Background(), resource)
			guard.MarkLongLived()
			guard.Exit()
		}), resource)
	}
}
