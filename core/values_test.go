package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	fleetmemory "github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// spend has so many calls made, and returns how many passed.
func spend(e *core.Engine, resource string, calls int, opts ...core.Option) (passed int) {
	for range calls {
		if guard, err := e.Entry(context.Background(), resource, opts...); err == nil {
			guard.Exit()
			passed++
		}
	}
	return passed
}

func valuesEngine(t *testing.T, list ...hotparam.Rule) (*core.Engine, *clock.Virtual) {
	now := clock.NewVirtual(time.Unix(1_700_000_000, 0))
	e := core.New(core.Config{Clock: now, Logger: quiet})
	t.Cleanup(e.Close)
	require.NoError(t, e.Load(rules.Set{HotParam: list, Access: []access.Rule{{Name: "who", Match: "*", Attribute: "user", Deny: rule.StringsOf("mallory")}}}))
	return e, now
}

func keyOf(name string) rule.Key { return rule.Key{Kind: "hotParam", Name: name} }

func TestOneValueIsResetAndTheOthersAreNot(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]hotparam.Rule{
		"bucket":        {Limit: 10},
		"window":        {Limit: 10, Algorithm: hotparam.SlidingWindow},
		"named value":   {Limit: 1, Values: rule.NumberMapOf(rule.NumberEntry{Key: rule.String("alice"), Value: 10}, rule.NumberEntry{Key: rule.String("bob"), Value: 10})},
		"composite":     {Limit: 10, Param: rule.StringsOf("tenant", "user")},
		"with a burst":  {Limit: 1, Burst: 10},
		"with penalty":  {Limit: 10, Penalty: hotparam.Penalty{After: 3, Within: time.Minute, For: time.Hour}},
		"masked values": {Limit: 10, Mask: rule.MaskHash},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r.Name, r.Resource = "r", "pay"
			if r.Window == 0 {
				r.Window = time.Hour
			}
			if r.Param.Len() == 0 {
				r.Param = rule.StringsOf("user")
			}
			e, _ := valuesEngine(t, r)
			alice := []core.Option{core.String("user", "alice"), core.String("tenant", "acme")}
			bob := []core.Option{core.String("user", "bob"), core.String("tenant", "acme")}
			require.Equal(t, 10, spend(e, "pay", 20, alice...))
			require.Equal(t, 10, spend(e, "pay", 20, bob...))
			states, err := e.ValueStates(keyOf("r"), alice...)
			require.NoError(t, err)
			require.Len(t, states, 1)
			assert.Equal(t, "pay", states[0].Resource)
			assert.InDelta(t, 10, states[0].Used, 1e-6)
			assert.Zero(t, states[0].Quota.Remaining)
			assert.Positive(t, states[0].Quota.Reset)
			if r.Mask != "" {
				assert.NotContains(t, states[0].Value, "alice")
			} else {
				assert.Contains(t, states[0].Value, "alice")
			}
			if r.Penalty.For > 0 {
				assert.Equal(t, time.Hour, states[0].Penalty)
			}
			require.NoError(t, e.ResetValue(keyOf("r"), alice...))
			states, err = e.ValueStates(keyOf("r"), alice...)
			require.NoError(t, err)
			assert.Zero(t, states[0].Used)
			assert.Zero(t, states[0].Penalty)
			assert.EqualValues(t, 10, states[0].Quota.Remaining)
			assert.Zero(t, spend(e, "pay", 5, bob...))
			assert.Equal(t, 10, spend(e, "pay", 20, alice...))
		})
	}
}

func TestPenaltyOfOneValueIsLifted(t *testing.T) {
	t.Parallel()
	r := hotparam.Rule{
		Name: "r", Resource: "login", Param: rule.StringsOf("user"), Limit: 2, Window: time.Minute,
		Penalty: hotparam.Penalty{After: 3, Within: time.Minute, For: time.Hour},
	}
	e, now := valuesEngine(t, r)
	alice, bob := core.String("user", "alice"), core.String("user", "bob")
	spend(e, "login", 5, alice)
	spend(e, "login", 5, bob)
	now.Advance(2 * time.Minute)
	require.Zero(t, spend(e, "login", 2, alice))
	require.NoError(t, e.LiftPenalty(keyOf("r"), alice))
	assert.Equal(t, 2, spend(e, "login", 2, alice))
	assert.Zero(t, spend(e, "login", 2, bob))
}

func TestValueOfARuleForEachResourceIsResetOnAll(t *testing.T) {
	t.Parallel()
	e, _ := valuesEngine(t, hotparam.Rule{Name: "r", Match: "api:*", Param: rule.StringsOf("user"), Limit: 3, Window: time.Hour})
	alice := core.String("user", "alice")
	for _, resource := range []string{"api:b", "api:a"} {
		require.Equal(t, 3, spend(e, resource, 5, alice))
	}
	spend(e, "api:c", 1, core.String("user", "bob"))
	states, err := e.ValueStates(keyOf("r"), alice)
	require.NoError(t, err)
	require.Len(t, states, 2)
	assert.Equal(t, []string{"api:a", "api:b"}, []string{states[0].Resource, states[1].Resource})
	require.NoError(t, e.ResetValue(keyOf("r"), alice))
	assert.Equal(t, 3, spend(e, "api:a", 5, alice))
	assert.Equal(t, 3, spend(e, "api:b", 5, alice))
}

func TestValueOfCallsUnderWayIsShown(t *testing.T) {
	t.Parallel()
	e, _ := valuesEngine(t, hotparam.Rule{Name: "r", Resource: "pay", Param: rule.StringsOf("user"), Concurrency: 3})
	alice := core.String("user", "alice")
	for range 2 {
		guard, err := e.Entry(context.Background(), "pay", alice)
		require.NoError(t, err)
		defer guard.Exit()
	}
	states, err := e.ValueStates(keyOf("r"), alice)
	require.NoError(t, err)
	assert.EqualValues(t, 2, states[0].InFlight)
	assert.EqualValues(t, 3, states[0].Places)
	assert.ErrorContains(t, e.ResetValue(keyOf("r"), alice), "calls under way")
}

func TestControlOfAValueTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	e, _ := valuesEngine(t,
		hotparam.Rule{Name: "r", Resource: "pay", Param: rule.StringsOf("tenant", "user"), Limit: 3},
		hotparam.Rule{Name: "each", Match: "api:*", Param: rule.StringsOf("user"), Limit: 3})
	spend(e, "api:a", 1)
	user := core.String("user", "alice")
	for _, test := range []struct {
		key  rule.Key
		act  func(rule.Key, ...core.Option) error
		want string
	}{
		{keyOf("x"), e.ResetValue, `no rule hotParam "x" is in force`},
		{rule.Key{Kind: "access", Name: "who"}, e.ResetValue, `rule access "who" has no limit for each value`},
		{keyOf("r"), e.ResetValue, `rule hotParam "r" looks at tenant, user: say which value of tenant`},
		{keyOf("each"), e.LiftPenalty, "the rule has no penalty"},
	} {
		assert.ErrorContains(t, test.act(test.key, user), test.want)
	}
}

func TestValueOfAFleetRuleIsWhatTheInstanceKnows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet, Fleet: fleet.Config{Backend: fleetmemory.New(clock.System()), Instance: "one"}})
		defer e.Close()
		require.NoError(t, e.Load(rules.Set{HotParam: []hotparam.Rule{{
			Name: "r", Resource: "login", Param: rule.StringsOf("user"), Limit: 3, Window: time.Hour, Scope: rule.ScopeFleet,
			Penalty: hotparam.Penalty{After: 2, Within: time.Minute, For: time.Hour},
		}}}))
		alice := core.String("user", "alice")
		for range 10 {
			spend(e, "login", 1, alice)
			time.Sleep(time.Second)
		}
		states, err := e.ValueStates(keyOf("r"), alice)
		require.NoError(t, err)
		require.Len(t, states, 1)
		assert.True(t, states[0].Instance)
		assert.Positive(t, states[0].Penalty)
		require.ErrorContains(t, e.ResetValue(keyOf("r"), alice), "one of the whole fleet")
		require.NoError(t, e.LiftPenalty(keyOf("r"), alice))
		states, err = e.ValueStates(keyOf("r"), alice)
		require.NoError(t, err)
		assert.Zero(t, states[0].Penalty)
	})
}
