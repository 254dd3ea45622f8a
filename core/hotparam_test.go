package core_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func newValueEngine(t *testing.T, list ...hotparam.Rule) (*core.Engine, *clock.Virtual) {
	t.Helper()
	c := clock.NewVirtual(time.Unix(1_700_000_040, 0))
	e := core.New(core.Config{Clock: c, Logger: slog.New(slog.DiscardHandler), Seed: 1})
	t.Cleanup(e.Close)
	require.NoError(t, e.Load(rules.Set{HotParam: list}))
	return e, c
}

// enters makes calls until one is refused, and returns how many passed.
func enters(t *testing.T, e *core.Engine, resource string, opts ...core.Option) (passed int, refused *core.BlockError) {
	t.Helper()
	for {
		guard, err := e.Entry(context.Background(), resource, opts...)
		guard.Exit()
		if err != nil {
			require.ErrorAs(t, err, &refused)
			return passed, refused
		}
		passed++
	}
}

func TestEachValueOfAnAttributeHasItsLimit(t *testing.T) {
	e, c := newValueEngine(t,
		hotparam.Rule{Name: "user", Resource: "orders", Param: rule.StringsOf("user"), Limit: 10, Values: rule.NumberMapOf(rule.NumberEntry{
			Key: rule.String("vip"), Value: 30,
		})},
		hotparam.Rule{Name: "both", Resource: "orders", Param: rule.StringsOf("tenant", "user"), Limit: 5},
		hotparam.Rule{Name: "caller", Resource: "orders", Param: rule.StringsOf("origin"), Limit: 50},
	)
	passed, refused := enters(t, e, "orders", core.String("user", "a"))
	assert.Equal(t, 10, passed)
	assert.Equal(t, "user", refused.Rule)
	assert.Equal(t, rule.RateLimited, refused.Reason)
	assert.Equal(t, 100*time.Millisecond, refused.RetryAfter)
	passed, _ = enters(t, e, "orders", core.String("user", "vip"))
	assert.Equal(t, 30, passed)
	passed, refused = enters(t, e, "orders", core.String("user", "b"), core.Int("tenant", 1))
	assert.Equal(t, 5, passed)
	assert.Equal(t, "both", refused.Rule)
	passed, refused = enters(t, e, "orders", core.Origin("mobile"))
	assert.Equal(t, 50, passed)
	assert.Equal(t, "caller", refused.Rule)
	c.Advance(time.Second)
	passed, _ = enters(t, e, "orders", core.String("user", "a"))
	assert.Equal(t, 10, passed)
}

func TestValuesOfARuleWithAPatternKeepTheirStateWhileTheRuleChanges(t *testing.T) {
	r := hotparam.Rule{Name: "each", Match: "api:*", Param: rule.StringsOf("user"), Limit: 10}
	e, c := newValueEngine(t, r)
	for i := range 5 {
		passed, _ := enters(t, e, fmt.Sprintf("api:%d", i), core.String("user", "a"))
		assert.Equal(t, 10, passed)
	}
	r.Limit, r.Burst, r.MaxValues = 20, 15, 500
	require.NoError(t, e.Load(rules.Set{HotParam: []hotparam.Rule{r}}))
	for i := range 5 {
		passed, _ := enters(t, e, fmt.Sprintf("api:%d", i), core.String("user", "a"))
		assert.Equal(t, 5, passed, "the burst is larger by so much")
	}
	c.Advance(500 * time.Millisecond)
	passed, _ := enters(t, e, "api:0", core.String("user", "a"))
	assert.Equal(t, 10, passed)
}

func TestAThrottledValueWaitsForItsTurn(t *testing.T) {
	e, c := newValueEngine(t, hotparam.Rule{
		Resource: "r", Param: rule.StringsOf("user"), Limit: 10, Algorithm: hotparam.Throttle, MaxWait: 150 * time.Millisecond,
	})
	passed, refused := enters(t, e, "r", core.String("user", "a"), core.NoWait())
	assert.Equal(t, 1, passed)
	assert.Equal(t, 100*time.Millisecond, refused.RetryAfter)
	arrival := e.Arrive(context.Background(), "r", func() {}, core.String("user", "a"))
	after, done := arrival.Proceed()
	require.False(t, done)
	assert.Equal(t, 100*time.Millisecond, after)
	_, err := e.Entry(context.Background(), "r", core.String("user", "a"))
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, 50*time.Millisecond, refused.RetryAfter)
	c.Advance(100 * time.Millisecond)
	_, done = arrival.Proceed()
	require.True(t, done)
	guard, err := arrival.Result()
	require.NoError(t, err)
	guard.Exit()
}

func TestAShadowRuleForValuesRefusesNobody(t *testing.T) {
	e, _ := newValueEngine(t, hotparam.Rule{Resource: "r", Param: rule.StringsOf("user"), Limit: 2, Shadow: true})
	would := 0
	for range 5 {
		guard, err := e.Entry(context.Background(), "r", core.String("user", "a"))
		require.NoError(t, err)
		if guard.WouldBlock() != nil {
			would++
		}
		guard.Exit()
	}
	assert.Equal(t, 3, would)
}

func TestCallsUnderWayOfAValueEndWithTheGuard(t *testing.T) {
	e, _ := newValueEngine(t, hotparam.Rule{Resource: "r", Param: rule.StringsOf("user"), Concurrency: 2})
	var highest atomic.Int64
	var underWay [4]atomic.Int64
	var callers sync.WaitGroup
	for g := range 16 {
		callers.Go(func() {
			for i := range 300 {
				n := (g + i) % len(underWay)
				guard, err := e.Entry(context.Background(), "r", core.Int("user", int64(n)))
				if err != nil {
					continue
				}
				if now := underWay[n].Add(1); now > 2 {
					highest.Store(now)
				}
				underWay[n].Add(-1)
				guard.Exit()
			}
		})
	}
	callers.Wait()
	assert.Zero(t, highest.Load())
	for n := range underWay {
		first, err := e.Entry(context.Background(), "r", core.Int("user", int64(n)))
		require.NoError(t, err)
		second, err := e.Entry(context.Background(), "r", core.Int("user", int64(n)))
		require.NoError(t, err)
		first.Exit()
		second.Exit()
	}
}

func TestSettlingChargesTheValue(t *testing.T) {
	for _, algorithm := range []hotparam.Algorithm{hotparam.TokenBucket, hotparam.SlidingWindow} {
		e, c := newValueEngine(t, hotparam.Rule{Resource: "r", Param: rule.StringsOf("user"), Limit: 10, Algorithm: algorithm})
		for range 2 { // the rule knows only then that calls are settled
			guard, err := e.Entry(context.Background(), "r", core.String("user", "a"))
			require.NoError(t, err)
			c.Advance(3 * time.Second) // the value is as new meanwhile
			guard.Settle(9)
			guard.Exit()
			passed, _ := enters(t, e, "r", core.String("user", "a"))
			assert.LessOrEqual(t, passed, 10)
			c.Advance(10 * time.Second)
		}
		guard, err := e.Entry(context.Background(), "r", core.String("user", "a"))
		require.NoError(t, err)
		c.Advance(3 * time.Second)
		guard.Settle(8)
		guard.Exit()
		passed, _ := enters(t, e, "r", core.String("user", "a"))
		assert.Equal(t, 3, passed, "the seven tokens more count from now on: %v", algorithm)
	}
}

func TestNoCallWithAValueAllocates(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	values := rule.NumberMapOf(
		rule.NumberEntry{Key: rule.String("vip"), Value: 1e6},
		rule.NumberEntry{Key: rule.String("v?p-*"), Value: 1e6},
	)
	many := hotparam.Rule{Param: rule.StringsOf("user"), Limit: 1e6, Values: values, Missing: rule.MissingShare}
	few := hotparam.Rule{Param: rule.StringsOf("user"), Limit: 1, Window: time.Hour, Penalty: hotparam.Penalty{After: 50, Within: time.Second, For: time.Hour}}
	both := hotparam.Rule{Param: rule.StringsOf("tenant", "user"), Limit: 1e6}
	var list []hotparam.Rule
	for resource, r := range map[string]hotparam.Rule{"many": many, "few": few, "both": both} {
		for _, algorithm := range []hotparam.Algorithm{hotparam.TokenBucket, hotparam.SlidingWindow, hotparam.Throttle} {
			r.Resource, r.Algorithm = fmt.Sprint(resource, " ", algorithm), algorithm
			list = append(list, r)
		}
	}
	list = append(list, hotparam.Rule{Resource: "concurrency", Param: rule.StringsOf("user"), Concurrency: 3})
	e, _ := newValueEngine(t, list...)
	ctx := context.Background()
	for _, r := range list {
		for _, name := range []string{"a", "vip", "vip-2", "a longer name of a user than others have"} {
			call := func() {
				guard, _ := e.Entry(ctx, r.Resource, core.String("user", name), core.Int("tenant", 7))
				guard.Exit()
			}
			missing := func() {
				guard, _ := e.Entry(ctx, r.Resource)
				guard.Exit()
			}
			for range 5000 { // beyond it values are counted by samples
				call()
			}
			missing()
			assert.Zero(t, testing.AllocsPerRun(200, call), "%s %s", r.Resource, name)
			assert.Zero(t, testing.AllocsPerRun(200, missing), "%s %s", r.Resource, name)
		}
	}
}

func TestNamedValuesKeepAStateOfTheirOwnOverAnyReloads(t *testing.T) {
	named := func(count int) rule.NumberMap {
		var entries []rule.NumberEntry
		for i := range count {
			entries = append(entries, rule.NumberEntry{Key: rule.String(fmt.Sprint("v", i)), Value: 4})
		}
		return rule.NumberMapOf(entries...)
	}
	r := hotparam.Rule{
		Name: "user", Resource: "orders", Param: rule.StringsOf("user"), Limit: 10, Window: 24 * time.Hour, Values: named(1),
	}
	e, c := newValueEngine(t, r)
	for i, count := range []int{20, 900, 3, 1000} {
		c.Advance(time.Second)
		r.Values = named(count)
		require.NoError(t, e.Load(rules.Set{HotParam: []hotparam.Rule{r}}))
		refused := 0
		for v := range count {
			if guard, err := e.Entry(t.Context(), "orders", core.String("user", fmt.Sprint("v", v))); err != nil {
				refused++
			} else {
				guard.Exit()
			}
		}
		assert.Zero(t, refused, "reload %d", i)
	}
}
