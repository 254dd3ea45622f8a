package core_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// withRules returns an engine with rules, on a virtual clock.
func withRules(t *testing.T, set rules.Set) (*core.Engine, *clock.Virtual) {
	t.Helper()
	virtual := clock.NewVirtual(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC))
	e := core.New(core.Config{Clock: virtual})
	t.Cleanup(e.Close)
	require.NoError(t, e.Load(set))
	return e, virtual
}

func TestFunctionOfDoReachesItsGuard(t *testing.T) {
	t.Parallel()
	e, _ := withRules(t, rules.Set{Flow: []flow.Rule{
		{Resource: "outer", Limit: 100, Window: time.Minute}, {Resource: "inner", Limit: 10, Window: time.Minute},
	}})
	var kept context.Context
	require.NoError(t, e.Do(t.Context(), "outer", func(ctx context.Context) error {
		assert.EqualValues(t, 60, core.Settle(ctx, 40).Left)
		derived, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		require.NoError(t, e.Do(derived, "inner", func(ctx context.Context) error {
			assert.EqualValues(t, 3, core.Settle(ctx, 7).Left, "the innermost call")
			kept = ctx
			return nil
		}))
		assert.EqualValues(t, 50, core.Settle(kept, 50).Left, "the inner call has ended")
		return nil
	}))
	assert.Nil(t, core.GuardFrom(kept))
	assert.Equal(t, core.Settlement{}, core.Settle(kept, 5))
	assert.False(t, core.MarkIgnored(kept))
	assert.Nil(t, core.GuardFrom(kept).WouldBlock())
	assert.Equal(t, core.Settlement{}, core.Settle(t.Context(), 5))
	assert.Equal(t, core.Settlement{}, core.GuardFrom(t.Context()).Settle(5), "a nil guard does nothing")
	core.GuardFrom(t.Context()).Exit()
}

func TestIgnoredByTheFunctionIsIgnoredWhateverItReturns(t *testing.T) {
	t.Parallel()
	e, _ := withRules(t, rules.Set{Breaker: []breaker.Rule{{
		Resource: "a", Strategy: breaker.ErrorCount, Threshold: 1, OpenFor: time.Second,
	}}})
	require.Error(t, e.Do(t.Context(), "a", func(ctx context.Context) error {
		assert.True(t, core.MarkIgnored(ctx))
		return assert.AnError
	}))
	require.Equal(t, breaker.Closed, e.Explain("a")[0].State)
	require.Error(t, e.Do(t.Context(), "a", func(context.Context) error { return assert.AnError }))
	assert.Equal(t, breaker.Open, e.Explain("a")[0].State, "the mark is of one call")
}

func TestSettleMayRunAtTheEndOfTheCall(t *testing.T) {
	t.Parallel()
	e, _ := withRules(t, rules.Set{Flow: []flow.Rule{{Resource: "a", Limit: 1e6, Window: time.Minute}}})
	var all sync.WaitGroup
	for range 100 {
		require.NoError(t, e.Do(t.Context(), "a", func(ctx context.Context) error {
			all.Go(func() {
				for n := range 50 {
					core.Settle(ctx, n)
				}
				core.MarkIgnored(ctx)
			})
			return nil
		}))
	}
	all.Wait()
}

func TestSettleSaysWhenALimitIsUsedUp(t *testing.T) {
	t.Parallel()
	user := core.String("user", "ann")
	flowRule := func(of flow.Rule) rules.Set {
		of.Resource, of.Window = "a", time.Minute
		return rules.Set{Flow: []flow.Rule{of}}
	}
	perUser := func(of hotparam.Rule) rules.Set {
		of.Resource, of.Param, of.Window, of.Limit = "a", rule.StringsOf("user"), time.Minute, 100
		return rules.Set{HotParam: []hotparam.Rule{of}}
	}
	for name, set := range map[string]rules.Set{
		"sliding window":     flowRule(flow.Rule{Limit: 100}),
		"fixed window":       flowRule(flow.Rule{Limit: 100, Algorithm: flow.FixedWindow}),
		"token bucket":       flowRule(flow.Rule{Limit: 100, Burst: 100, Algorithm: flow.TokenBucket}),
		"bucket that waits":  flowRule(flow.Rule{Limit: 100, Burst: 100, Algorithm: flow.TokenBucket, MaxWait: time.Hour}),
		"bucket of a value":  perUser(hotparam.Rule{Burst: 100, Algorithm: hotparam.TokenBucket}),
		"window of a value":  perUser(hotparam.Rule{Algorithm: hotparam.SlidingWindow}),
		"the least of two":   {Flow: []flow.Rule{{Name: "1", Resource: "a", Limit: 100, Window: time.Minute}, {Name: "2", Resource: "a", Limit: 200, Window: time.Minute}}},
		"beside a shadow":    {Flow: []flow.Rule{{Name: "1", Resource: "a", Limit: 100, Window: time.Minute}, {Name: "2", Resource: "a", Shadow: true, Window: time.Minute}}},
		"beside a throttle":  {Flow: []flow.Rule{{Name: "1", Resource: "a", Limit: 100, Window: time.Minute}, {Name: "2", Resource: "a", Limit: 1, Algorithm: flow.Throttle, MaxWait: time.Hour}}},
		"a hundred at least": {Flow: []flow.Rule{{Name: "1", Resource: "a", Limit: 100, Window: time.Minute}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, virtual := withRules(t, set)
			for call := range 2 { // the first one that is settled, and one that knows that calls are
				guard, err := e.Entry(t.Context(), "a", core.Tokens(10), user)
				require.NoError(t, err)
				for n := 10; n < 100; n += 10 {
					s := guard.Settle(n)
					assert.Equal(t, core.Settlement{Known: true, Left: int64(100 - n)}, s, "call %d", call)
					assert.False(t, s.UsedUp())
				}
				assert.True(t, guard.Settle(100).UsedUp())
				assert.False(t, guard.Settle(100).Overdrawn())
				assert.True(t, guard.Settle(130).Overdrawn())
				assert.EqualValues(t, 99, guard.Settle(1).Left)
				guard.Exit()
				assert.Equal(t, core.Settlement{}, guard.Settle(5), "after its end")
				virtual.Advance(time.Hour)
			}
		})
	}
}

func TestContextsOfCallsCostNoAllocationEach(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	e, _ := withRules(t, rules.Set{Flow: []flow.Rule{{Resource: "a", Limit: 1e9}}})
	ctx := t.Context()
	assert.Zero(t, testing.AllocsPerRun(200, func() {
		_ = e.Do(ctx, "a", func(ctx context.Context) error {
			core.Settle(ctx, 2)
			return nil
		})
	}))
}

func TestMethodsOfANilGuardDoNothing(t *testing.T) {
	t.Parallel()
	g := core.GuardFrom(t.Context())
	require.Nil(t, g)
	g.Fail(errors.New("x"))
	g.MarkFailed()
	g.MarkIgnored()
	g.MarkLongLived()
	g.Cancel()
	g.Exit()
	assert.Nil(t, g.WouldBlock())
	assert.Equal(t, rule.LoadNone, g.Load())
	assert.Equal(t, t.Context(), g.Context(t.Context()))
	_, ok := g.Place()
	assert.False(t, ok)
}
