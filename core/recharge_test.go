package core_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	fleetmemory "github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func prepaidFlow(limit float64) rules.Set {
	return rules.Set{Flow: []flow.Rule{{Name: "credit", Resource: "r", Limit: limit, Algorithm: flow.Prepaid}}}
}

func prepaidValues(limit float64) rules.Set {
	return rules.Set{HotParam: []hotparam.Rule{{
		Name: "credit", Match: "r*", Shared: true, Param: rule.StringsOf("tenant"), Limit: limit, Algorithm: hotparam.Prepaid,
	}}}
}

var (
	flowCredit  = rule.Key{Kind: "flow", Name: "credit"}
	valueCredit = rule.Key{Kind: "hotParam", Name: "credit"}
)

// passesOf counts how many of some calls pass and go on, with their guards ended.
func passesOf(t testing.TB, e *core.Engine, times int, opts ...core.Option) (count int) {
	t.Helper()
	for range times {
		if guard, err := e.Entry(t.Context(), "r", opts...); err == nil {
			guard.Exit()
			count++
		}
	}
	return count
}

func recharge(t testing.TB, e *core.Engine, key rule.Key, tokens int64, opts ...core.Option) int64 {
	t.Helper()
	left, err := e.Recharge(t.Context(), key, "", tokens, core.Order{By: "alice", Reason: "invoice 7"}, opts...)
	require.NoError(t, err)
	return left
}

func TestBalanceLastsUntilItIsRecharged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key  rule.Key
		set  func(limit float64) rules.Set
		opts []core.Option
	}{
		"flow":     {flowCredit, prepaidFlow, nil},
		"hotParam": {valueCredit, prepaidValues, []core.Option{core.String("tenant", "acme")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, virtual := newEngineOf(t, c.set(3))
			assert.Equal(t, 3, passesOf(t, e, 10, c.opts...))
			virtual.Advance(400 * 24 * time.Hour)
			_, err := e.Entry(t.Context(), "r", c.opts...)
			var block *core.BlockError
			require.ErrorAs(t, err, &block)
			assert.Zero(t, block.RetryAfter, "nobody knows when it is recharged")
			assert.EqualValues(t, 5, recharge(t, e, c.key, 5, c.opts...))
			guard, err := e.Entry(t.Context(), "r", c.opts...)
			require.NoError(t, err)
			assert.Equal(t, core.Settlement{Known: true, Left: 2}, guard.Settle(3))
			assert.True(t, guard.Settle(9).Overdrawn())
			guard.Exit()
			assert.EqualValues(t, -4, recharge(t, e, c.key, 0, c.opts...), "what a call cost more is taken in any case")
			assert.EqualValues(t, 10, recharge(t, e, c.key, 14, c.opts...))
			require.NoError(t, e.Load(c.set(5)))
			assert.EqualValues(t, 12, recharge(t, e, c.key, 0, c.opts...), "all balances begin with 2 more")
			assert.EqualValues(t, -1, recharge(t, e, c.key, -13, c.opts...))
			assert.Zero(t, passesOf(t, e, 3, c.opts...))
			quotas := e.Quotas("r", c.opts...)
			require.Len(t, quotas, 1)
			assert.Equal(t, rule.Quota{Limit: 5, Effective: 5, Prepaid: true, Used: 6, Capacity: 5}, *quotas[0].Quota)
		})
	}
}

func TestValuesHaveBalancesOfTheirOwn(t *testing.T) {
	t.Parallel()
	e, virtual := newEngineOf(t, prepaidValues(0))
	acme, other := core.String("tenant", "acme"), core.String("tenant", "other")
	assert.Zero(t, passesOf(t, e, 2, acme))
	assert.EqualValues(t, 1000, recharge(t, e, valueCredit, 1000, acme))
	assert.Equal(t, 10, passesOf(t, e, 10, acme))
	assert.Zero(t, passesOf(t, e, 2, other))
	assert.Zero(t, recharge(t, e, valueCredit, 0, other))
	states, err := e.ValueStates(valueCredit, acme)
	require.NoError(t, err)
	require.Len(t, states, 1)
	assert.EqualValues(t, 990, states[0].Quota.Remaining)
	require.Error(t, e.ResetValue(valueCredit, acme), "that would take what somebody has paid for")
	virtual.Advance(time.Hour) // nothing is forgotten
	assert.EqualValues(t, 990, recharge(t, e, valueCredit, 0, acme))
	var texts []string
	events, _ := e.Events(0)
	for _, event := range events {
		if event.Type == "recharge" {
			texts = append(texts, event.By+": "+event.Text)
		}
	}
	assert.Equal(t, []string{`alice: the value "acme": 1000 tokens were added, 1000 are left: invoice 7`}, texts)
}

// Whoever invents values takes no space, unless values have tokens at first: then those that find no
// space are refused, and none shares the balance of another.
func TestInventedValuesTakeNoBalance(t *testing.T) {
	t.Parallel()
	for limit, want := range map[float64]int{0: 0, 1: 120} { // a fifth beyond maxValues
		set := prepaidValues(limit)
		set.HotParam[0].MaxValues = 100
		e, virtual := newEngineOf(t, set)
		passed := 0
		for i := range 500 {
			passed += passesOf(t, e, 2, core.String("tenant", strconv.Itoa(i)))
			virtual.Advance(2 * time.Second)
		}
		assert.Equal(t, want, passed)
		_, err := e.Recharge(t.Context(), valueCredit, "", 5, core.Order{}, core.String("tenant", "late"))
		if limit == 0 {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "maxValues")
		}
	}
}

func TestPatternHasABalanceForEachResource(t *testing.T) {
	t.Parallel()
	e, _ := newEngineOf(t, rules.Set{Flow: []flow.Rule{{Name: "credit", Match: "r*", Algorithm: flow.Prepaid}}})
	ctx := t.Context()
	_, err := e.Recharge(ctx, flowCredit, "", 5, core.Order{})
	require.ErrorContains(t, err, "say which")
	_, err = e.Recharge(ctx, flowCredit, "other", 5, core.Order{})
	require.ErrorContains(t, err, "is not for the resource")
	left, err := e.Recharge(ctx, flowCredit, "r", 5, core.Order{})
	require.NoError(t, err)
	assert.EqualValues(t, 5, left)
	assert.Equal(t, 5, passesOf(t, e, 9), "also if nobody has called it before")
}

func TestOnlyBalancesAreRecharged(t *testing.T) {
	t.Parallel()
	e, _ := newEngineOf(t, rules.Set{
		Flow:     []flow.Rule{{Name: "rate", Resource: "r", Limit: 5}, {Name: "credit", Resource: "r", Algorithm: flow.Prepaid}},
		HotParam: prepaidValues(0).HotParam,
	})
	ctx := t.Context()
	for want, try := range map[string]func() (int64, error){
		"has no balance": func() (int64, error) {
			return e.Recharge(ctx, rule.Key{Kind: "flow", Name: "rate"}, "", 5, core.Order{})
		},
		`no rule flow "none"`: func() (int64, error) {
			return e.Recharge(ctx, rule.Key{Kind: "flow", Name: "none"}, "", 5, core.Order{})
		},
		"say which value of tenant":  func() (int64, error) { return e.Recharge(ctx, valueCredit, "", 5, core.Order{}) },
		"is for the resource":        func() (int64, error) { return e.Recharge(ctx, flowCredit, "x", 5, core.Order{}) },
		"a balance can have at most": func() (int64, error) { return e.Recharge(ctx, flowCredit, "", rule.MaxBalance+1, core.Order{}) },
		"the most that a balance can ": func() (int64, error) {
			_, _ = e.Recharge(ctx, flowCredit, "", 1, core.Order{})
			return e.Recharge(ctx, flowCredit, "", rule.MaxBalance, core.Order{})
		},
	} {
		_, err := try()
		require.Error(t, err, want)
		assert.ErrorContains(t, err, want)
	}
}

// Whatever happens at once, what passed and what is left are what there was.
func TestBalanceIsExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	const workers, rounds, each = 16, 300, 7
	for name, c := range map[string]struct {
		key  rule.Key
		set  func(limit float64) rules.Set
		opts []core.Option
	}{
		"flow":     {flowCredit, prepaidFlow, nil},
		"hotParam": {valueCredit, prepaidValues, []core.Option{core.String("tenant", "acme")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := newEngineOf(t, c.set(10))
			var passed, added atomic.Int64
			var group sync.WaitGroup
			for worker := range workers {
				group.Go(func() {
					for round := range rounds {
						if guard, err := e.Entry(context.Background(), "r", c.opts...); err == nil {
							passed.Add(1)
							guard.Exit()
						}
						if (round+worker)%10 == 0 {
							if _, err := e.Recharge(context.Background(), c.key, "", each, core.Order{}, c.opts...); err == nil {
								added.Add(each)
							}
						}
						if worker == 0 && round%50 == 0 { // a reload, back to the same limit in the end
							assert.NoError(t, e.Load(c.set(float64(10+round/50%2))))
						}
					}
				})
			}
			group.Wait()
			require.NoError(t, e.Load(c.set(10)))
			assert.Equal(t, 10+added.Load()-passed.Load(), recharge(t, e, c.key, 0, c.opts...))
		})
	}
}

func TestBalanceOfTheFleet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key  rule.Key
		text string
		opts []core.Option
	}{
		"flow":     {flowCredit, "flow:\n  - {name: credit, resource: r, limit: 0, algorithm: prepaid, scope: fleet}", nil},
		"hotParam": {valueCredit, "hotParam:\n  - {name: credit, resource: r, param: tenant, limit: 0, algorithm: prepaid, scope: fleet}", []core.Option{core.String("tenant", "acme")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				set, err := rules.Parse("", []byte(c.text))
				require.NoError(t, err)
				store := fleetmemory.New(clock.System())
				start := func(i int) *core.Engine {
					e := core.New(core.Config{Logger: quiet, Fleet: fleet.Config{Backend: store, Instance: strconv.Itoa(i)}})
					require.NoError(t, e.Load(set))
					return e
				}
				engines := []*core.Engine{start(0), start(1), start(2)}
				time.Sleep(time.Second)
				assert.Zero(t, passesOf(t, engines[0], 3, c.opts...))
				assert.EqualValues(t, 100, recharge(t, engines[1], c.key, 100, c.opts...))
				time.Sleep(1100 * time.Millisecond)
				passed := 0
				for range 50 {
					for _, e := range engines {
						passed += passesOf(t, e, 1, c.opts...)
					}
				}
				assert.Equal(t, 100, passed)
				assert.EqualValues(t, 7, recharge(t, engines[2], c.key, 7, c.opts...))
				for _, e := range engines {
					e.Close()
				}
				again := start(3) // all instances have restarted
				time.Sleep(time.Second)
				assert.EqualValues(t, 7, recharge(t, again, c.key, 0, c.opts...))
				assert.Equal(t, 7, passesOf(t, again, 20, c.opts...))
				again.Close()
			})
		})
	}
}

func TestCallsOfBalancesCostNoAllocation(t *testing.T) {
	for name, c := range map[string]struct {
		set func(limit float64) rules.Set
		opt core.Option
	}{
		"flow": {prepaidFlow, core.Tokens(1)}, "hotParam": {prepaidValues, core.String("tenant", "acme")},
	} {
		for _, limit := range []float64{0, 1e9} {
			e, _ := newEngineOf(t, c.set(limit))
			ctx := context.Background()
			allocs := testing.AllocsPerRun(1000, func() {
				if guard, err := e.Entry(ctx, "r", c.opt); err == nil {
					guard.Exit()
				}
			})
			assert.Zero(t, allocs, "%s with %v tokens", name, limit)
		}
	}
}
