package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
)

func TestStateForcedOnAKindHoldsForPresentAndFutureRules(t *testing.T) {
	e, _ := newEngine(t)
	one := breaker.Rule{Name: "one", Resource: "one", Threshold: 0.5}
	many := breaker.Rule{Name: "many", Match: "many:*", Threshold: 0.5}
	later := breaker.Rule{Name: "later", Resource: "later", Threshold: 0.5}
	require.NoError(t, e.Load(rules.Set{Breaker: []breaker.Rule{one, many}}))
	require.Equal(t, 1, enter(e, "many:a", 1))

	require.NoError(t, e.Control(core.Scope{Kind: rules.KindBreaker}, breaker.Open))
	forced := e.Status().Forced
	require.Len(t, forced, 1)
	require.Equal(t, core.Scope{Kind: rules.KindBreaker}, forced[0].Scope)
	require.Equal(t, breaker.Open, forced[0].State)
	require.NoError(t, e.Load(rules.Set{Breaker: []breaker.Rule{one, many, later}}))
	for _, resource := range []string{"one", "many:a", "many:b", "later"} {
		require.Zero(t, enter(e, resource, 1), resource)
	}

	own := core.Scope{Kind: rules.KindBreaker, Rule: "one"}
	require.NoError(t, e.Control(own, breaker.Closed))
	require.Equal(t, 1, enter(e, "one", 1), "a rule's own state goes before that of the kind")
	require.NoError(t, e.Control(own, ""))
	require.Zero(t, enter(e, "one", 1))

	require.NoError(t, e.Control(core.Scope{Kind: rules.KindBreaker}, ""))
	require.Empty(t, e.Status().Forced)
	for _, resource := range []string{"one", "many:a", "many:b", "later"} {
		require.Equal(t, 1, enter(e, resource, 1), resource)
	}
}

func TestRuleThatComesBackHasTheStateForcedOnItsKindMeanwhile(t *testing.T) {
	e, _ := newEngine(t)
	set := rules.Set{Breaker: []breaker.Rule{{Name: "b", Resource: "r", Threshold: 0.5}}}
	require.NoError(t, e.Load(set))
	require.Equal(t, 1, enter(e, "r", 1))
	require.NoError(t, e.Load(rules.Set{}))
	require.NoError(t, e.Control(core.Scope{Kind: rules.KindBreaker}, breaker.Open))
	require.NoError(t, e.Load(set))
	require.Zero(t, enter(e, "r", 1))
}

func TestForcingAStateThatThereIsNotFails(t *testing.T) {
	e, _ := newEngine(t)
	require.ErrorIs(t, e.Control(core.Scope{Kind: "nosuch"}, "open"), core.ErrUnknown)
	require.ErrorContains(t, e.Control(core.Scope{Kind: "nosuch"}, "open"), `there is no such kind of rules: "nosuch"`)
	require.ErrorContains(t, e.Control(core.Scope{Kind: rules.KindFlow}, "open"), `of kind "flow" cannot be forced`)
	require.ErrorContains(t, e.Control(core.Scope{Kind: rules.KindBreaker}, "ajar"), `the states are closed, open, and "" to release it`)
	require.ErrorIs(t, e.Control(core.Scope{Kind: rules.KindBreaker, Rule: "b"}, "open"), core.ErrUnknown)
	require.ErrorContains(t, e.Control(core.Scope{Kind: rules.KindBreaker, Rule: "b"}, "open"), `no such rule is in force: breaker "b"`)
	e.Close()
	require.ErrorIs(t, e.Control(core.Scope{Kind: rules.KindBreaker}, breaker.Open), core.ErrClosed)
}
