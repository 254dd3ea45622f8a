package core_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// newEngineOf returns an engine on a virtual clock, with rules of any kind.
func newEngineOf(t testing.TB, set rules.Set) (*core.Engine, *clock.Virtual) {
	t.Helper()
	e, c := newEngine(t)
	require.NoError(t, e.Load(set))
	return e, c
}

// enterDemoted makes n calls and returns how many passed, and how many of these were demoted.
func enterDemoted(t testing.TB, e *core.Engine, resource string, n int, opts ...core.Option) (passed, demoted int) {
	t.Helper()
	for range n {
		guard, err := e.Entry(context.Background(), resource, opts...)
		if err != nil {
			require.ErrorIs(t, err, core.ErrBlocked)
			continue
		}
		passed++
		if guard.Demoted() {
			demoted++
		}
		guard.Exit()
	}
	return passed, demoted
}

// ruleOf returns the state of a rule on a resource.
func ruleOf(t testing.TB, e *core.Engine, resource, name string) core.RuleSnapshot {
	t.Helper()
	for _, of := range e.Resource(resource).Snapshot().Rules {
		if of.Name == name {
			return of
		}
	}
	require.Failf(t, "no such rule", "%s on %s", name, resource)
	return core.RuleSnapshot{}
}

func TestCallsOverARateAreDemotedAndPass(t *testing.T) {
	user := core.String("user", "u1")
	for name, set := range map[string]rules.Set{
		"slidingWindow": {Flow: []flow.Rule{{Name: "r", Resource: "a", Limit: 4, OnExceed: rule.ExceedDemote}}},
		"fixedWindow":   {Flow: []flow.Rule{{Name: "r", Resource: "a", Limit: 4, Algorithm: flow.FixedWindow, OnExceed: rule.ExceedDemote}}},
		"tokenBucket":   {Flow: []flow.Rule{{Name: "r", Resource: "a", Limit: 4, Algorithm: flow.TokenBucket, OnExceed: rule.ExceedDemote}}},
		"pattern":       {Flow: []flow.Rule{{Name: "r", Match: "*", Shared: true, Limit: 4, OnExceed: rule.ExceedDemote}}},
		"value": {HotParam: []hotparam.Rule{{
			Name: "r", Resource: "a", Param: rule.StringsOf("user"), Limit: 4, OnExceed: rule.ExceedDemote,
		}}},
		"value in windows": {HotParam: []hotparam.Rule{{
			Name: "r", Resource: "a", Param: rule.StringsOf("user"), Limit: 4, Algorithm: hotparam.SlidingWindow, OnExceed: rule.ExceedDemote,
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			e, c := newEngineOf(t, set)
			for range 3 {
				passed, demoted := enterDemoted(t, e, "a", 10, user)
				assert.Equal(t, []int{10, 6}, []int{passed, demoted})
				c.Advance(2 * time.Second)
			}
			of := ruleOf(t, e, "a", "r")
			assert.EqualValues(t, 18, of.Demoted)
			assert.Zero(t, of.Blocked)
			assert.Empty(t, e.Quotas("a", user), "no caller is told of a limit that refuses nobody")
			guard, decision, err := e.Decide(t.Context(), "a", user)
			require.NoError(t, err)
			assert.Nil(t, decision.Refusal)
			assert.Empty(t, decision.Limits)
			guard.Exit()
		})
	}
}

// A call that one rule demotes takes nothing of the others, be they asked before or after it.
func TestDemotedCallsTakeNothingOfOtherRulesThatDemote(t *testing.T) {
	e, _ := newEngineOf(t, rules.Set{
		Flow: []flow.Rule{{Name: "all", Match: "*", Shared: true, Limit: 10, OnExceed: rule.ExceedDemote}},
		HotParam: []hotparam.Rule{
			{Name: "tenant", Resource: "a", Param: rule.StringsOf("tenant"), Limit: 6, OnExceed: rule.ExceedDemote},
			{Name: "user", Resource: "a", Param: rule.StringsOf("user"), Limit: 2, OnExceed: rule.ExceedDemote},
		},
	})
	call := func(user string, n int) int {
		_, demoted := enterDemoted(t, e, "a", n, core.String("user", user), core.String("tenant", "t1"))
		return demoted
	}
	assert.Equal(t, 98, call("loud", 100)) // of which the tenant, asked before, keeps 4
	assert.Equal(t, 0, call("u1", 2))
	assert.Equal(t, 0, call("u2", 2))
	assert.Equal(t, 1, call("u3", 1), "of the tenant nothing is left")
	assert.EqualValues(t, 98, ruleOf(t, e, "a", "user").Demoted)
	assert.EqualValues(t, 1, ruleOf(t, e, "a", "tenant").Demoted)
	assert.Zero(t, ruleOf(t, e, "a", "all").Demoted)
	_, demoted := enterDemoted(t, e, "b", 5)
	assert.Equal(t, 1, demoted, "4 of 10 are left")
}

func TestDemotedCallsWaitBehindOthers(t *testing.T) {
	e, c := newEngineOf(t, rules.Set{
		Flow:      []flow.Rule{{Name: "rate", Resource: "a", Limit: 2, Window: time.Minute, OnExceed: rule.ExceedDemote, Origin: "loud"}},
		Isolation: []isolation.Rule{{Name: "pool", Resource: "a", Limit: 1, MaxWait: time.Second}},
	})
	first, err := e.Entry(t.Context(), "a")
	require.NoError(t, err)
	var order []string
	var calls []*core.Arrival
	var names []string
	come := func(name string) {
		a := e.Arrive(t.Context(), "a", func() {}, core.Origin(name[:4]))
		_, done := a.Proceed()
		require.False(t, done)
		calls, names = append(calls, a), append(names, name)
	}
	for _, name := range []string{"loud 1", "loud 2", "loud 3", "good 1", "good 2"} {
		come(name)
		c.Advance(time.Millisecond)
	}
	first.Exit()
	for len(order) < len(calls) {
		before := len(order)
		for i, a := range calls {
			if _, done := a.Proceed(); done && names[i] != "" {
				guard, err := a.Result()
				require.NoError(t, err)
				order, names[i] = append(order, names[i]), ""
				assert.Equal(t, order[len(order)-1] == "loud 3", guard.Demoted())
				guard.Exit()
				break
			}
		}
		require.Greater(t, len(order), before)
	}
	assert.Equal(t, []string{"loud 1", "loud 2", "good 1", "good 2", "loud 3"}, order)
	assert.EqualValues(t, 1, ruleOf(t, e, "a", "rate").Demoted, "a call that asks its rules twice counts once")
}

func TestWhatALaterRuleRefusesIsGivenBackAndStaysDemoted(t *testing.T) {
	e, _ := newEngine(t,
		flow.Rule{Name: "rate", Resource: "a", Limit: 3, OnExceed: rule.ExceedDemote},
		flow.Rule{Name: "hard", Resource: "a", Limit: 5},
		flow.Rule{Name: "other", Resource: "a", Limit: 0, Origin: "nobody"},
	)
	passed, demoted := enterDemoted(t, e, "a", 4, core.Origin("nobody"))
	assert.Equal(t, []int{0, 0}, []int{passed, demoted})
	assert.Zero(t, ruleOf(t, e, "a", "rate").Demoted, "refused calls give their tokens back")
	passed, demoted = enterDemoted(t, e, "a", 9)
	assert.Equal(t, []int{5, 2}, []int{passed, demoted})
	assert.EqualValues(t, 6, ruleOf(t, e, "a", "rate").Demoted, "four of them were refused by another rule")
	assert.EqualValues(t, 4, ruleOf(t, e, "a", "hard").Blocked)
	var order []string
	for _, of := range e.Explain("a") {
		order = append(order, of.Name)
	}
	assert.Equal(t, []string{"rate", "hard"}, order)
}

// A call that was demoted, and then refused by another rule, says so.
func TestRefusalsSayWhetherTheCallWasDemoted(t *testing.T) {
	e, _ := newEngine(t,
		flow.Rule{Name: "rate", Resource: "a", Limit: 2, OnExceed: rule.ExceedDemote},
		flow.Rule{Name: "hard", Resource: "a", Limit: 3},
		flow.Rule{Name: "closed", Resource: "a", Limit: 0, Origin: "nobody"},
	)
	refusal := func(opts ...core.Option) (refused core.BlockError) {
		guard, err := e.Entry(t.Context(), "a", opts...)
		if of := (*core.BlockError)(nil); errors.As(err, &of) {
			return *of
		}
		guard.Exit()
		return core.BlockError{}
	}
	assert.Equal(t, "closed", refusal(core.Origin("nobody")).Rule)
	assert.False(t, refusal(core.Origin("nobody")).Demoted)
	for range 3 {
		assert.Empty(t, refusal().Rule)
	}
	for range 2 { // made, and from the cache
		assert.Equal(t, "hard", refusal().Rule)
		assert.True(t, refusal().Demoted)
	}
	if !raceEnabled {
		assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = e.Entry(t.Context(), "a") }))
	}
}

func TestShadowsDemoteNobody(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Name: "rate", Resource: "a", Limit: 3, OnExceed: rule.ExceedDemote, Shadow: true})
	passed, demoted := enterDemoted(t, e, "a", 10)
	assert.Equal(t, []int{10, 0}, []int{passed, demoted})
	of := ruleOf(t, e, "a", "rate")
	assert.EqualValues(t, 7, of.Demoted)
	assert.Zero(t, of.WouldBlock)
}

// A call that may never be made is refused, whatever the rate.
func TestCallsWithoutAValueAreRefusedByARuleThatDemotes(t *testing.T) {
	e, _ := newEngineOf(t, rules.Set{HotParam: []hotparam.Rule{{
		Resource: "a", Param: rule.StringsOf("user"), Limit: 4, OnExceed: rule.ExceedDemote, Missing: rule.MissingBlock,
	}}})
	_, err := e.Entry(t.Context(), "a")
	var refusal *core.BlockError
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, rule.Denied, refusal.Reason)
}

// What a demoted call costs is no cost of the rule that demoted it.
func TestDemotedCallsSettleNothing(t *testing.T) {
	e, c := newEngine(t, flow.Rule{Name: "rate", Resource: "a", Limit: 10, Window: time.Minute, Algorithm: flow.FixedWindow, OnExceed: rule.ExceedDemote})
	guard, err := e.Entry(t.Context(), "a", core.Tokens(10))
	require.NoError(t, err)
	over, err := e.Entry(t.Context(), "a")
	require.NoError(t, err)
	assert.True(t, over.Demoted())
	assert.False(t, over.Settle(5).Known)
	assert.False(t, over.Settle(0).UsedUp())
	assert.True(t, over.Demoted())
	over.Exit()
	assert.False(t, over.Demoted())
	assert.False(t, guard.Demoted())
	guard.Settle(8)
	guard.Exit()
	_, demoted := enterDemoted(t, e, "a", 3)
	assert.Equal(t, 1, demoted)
	c.Advance(time.Minute)
	_, demoted = enterDemoted(t, e, "a", 11)
	assert.Equal(t, 1, demoted)
}

// However many goroutines call, exactly the limit passes without being demoted; what another rule
// refuses does not count.
func TestTheLimitOfARuleThatDemotesIsExact(t *testing.T) {
	const workers, each, limit = 32, 300, 1000
	e, _ := newEngineOf(t, rules.Set{
		Flow: []flow.Rule{{Name: "rate", Match: "*", Shared: true, Limit: limit, Window: time.Hour, OnExceed: rule.ExceedDemote}},
		HotParam: []hotparam.Rule{{
			Name: "user", Resource: "a", Param: rule.StringsOf("user"), Limit: 250, Window: time.Hour, Burst: 250, OnExceed: rule.ExceedDemote,
		}},
	})
	var within, demoted atomic.Int64
	var byUser [4]atomic.Int64
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() {
			user := core.String("user", strconv.Itoa(i%len(byUser)))
			for range each {
				guard, err := e.Entry(context.Background(), "a", user)
				if !assert.NoError(t, err) {
					return
				}
				if guard.Demoted() {
					demoted.Add(1)
				} else {
					within.Add(1)
					byUser[i%len(byUser)].Add(1)
				}
				guard.Exit()
			}
		})
	}
	group.Wait()
	assert.LessOrEqual(t, within.Load(), int64(limit))
	for i := range byUser {
		assert.LessOrEqual(t, byUser[i].Load(), int64(250))
	}
	assert.EqualValues(t, demoted.Load(), ruleOf(t, e, "a", "rate").Demoted+ruleOf(t, e, "a", "user").Demoted)
	assert.EqualValues(t, workers*each, within.Load()+demoted.Load())
	for i := range byUser { // what was held for a moment is back
		for ; byUser[i].Load() < 250; byUser[i].Add(1) {
			_, over := enterDemoted(t, e, "a", 1, core.String("user", strconv.Itoa(i)))
			assert.Zero(t, over)
		}
	}
	_, over := enterDemoted(t, e, "b", 1)
	assert.Equal(t, 1, over)
}

func TestDemotedCallsDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	e, _ := newEngineOf(t, rules.Set{
		Flow: []flow.Rule{
			{Name: "never", Resource: "a", Limit: 0, OnExceed: rule.ExceedDemote},
			{Name: "always", Resource: "b", Limit: 1e9, OnExceed: rule.ExceedDemote},
		},
		HotParam: []hotparam.Rule{{Match: "*", Param: rule.StringsOf("user"), Limit: 1e9, OnExceed: rule.ExceedDemote}},
	})
	user := core.String("user", "u1")
	for _, resource := range []string{"a", "b"} {
		ctx := context.Background()
		assert.Zero(t, testing.AllocsPerRun(200, func() {
			guard, _ := e.Entry(ctx, resource, user)
			guard.Exit()
		}), resource)
	}
}

func TestPriorityOfADemotedCallIsHandedOn(t *testing.T) {
	t.Parallel()
	e, _ := newEngineOf(t, rules.Set{Flow: []flow.Rule{{Name: "rate", Resource: "r", Limit: 1, OnExceed: rule.ExceedDemote}}})
	ctx := core.ContextWithPriority(t.Context(), rule.PriorityHigh)
	for _, want := range []rule.Priority{rule.PriorityHigh, rule.PrioritySheddable} {
		require.NoError(t, e.Do(ctx, "r", func(ctx context.Context) error {
			return e.Do(ctx, "another", func(ctx context.Context) error { // as a client that is guarded
				p, ok := core.PriorityFromContext(ctx)
				assert.True(t, ok)
				assert.Equal(t, want, p)
				return nil
			})
		}))
	}
}
