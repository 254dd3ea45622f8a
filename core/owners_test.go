package core_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

func TestOwnersDoNotClearEachOthersRules(t *testing.T) {
	e, _ := newEngine(t)
	limited := func(resource string, limit float64) rules.Set {
		return rules.Set{Flow: []flow.Rule{{Resource: resource, Limit: limit}}}
	}
	require.NoError(t, e.Load(limited("a", 1)))
	require.NoError(t, e.LoadAs("orders", limited("b", 2)))
	require.NoError(t, e.LoadAs("billing", limited("c", 3)))
	assert.Equal(t, map[string]float64{"a": 1, "b": 2, "c": 3}, active(e))

	require.NoError(t, e.LoadAs("orders", limited("b", 4)))
	require.NoError(t, e.Load(rules.Set{}))
	assert.Equal(t, map[string]float64{"b": 4, "c": 3}, active(e))
	require.NoError(t, e.LoadAs("orders", rules.Set{}))
	assert.Equal(t, map[string]float64{"c": 3}, active(e))
}

// When two owners have a rule of the same kind and name, that of the first by name is
// in force, in whatever order they load, and keeps its state when it goes over to the
// other.
func TestFirstOwnerByNameHasARuleThatTwoOwnersHave(t *testing.T) {
	e, _ := newEngine(t)
	set := func(limit float64) rules.Set { return rules.Set{Flow: []flow.Rule{{Resource: "r", Limit: limit}}} }
	require.NoError(t, e.LoadAs("b", set(2)))
	assert.Equal(t, 2, enter(e, "r", 5))
	require.NoError(t, e.LoadAs("a", set(3)))
	assert.Equal(t, map[string]float64{"r": 3}, active(e))
	assert.Equal(t, 1, enter(e, "r", 5), "two have passed before")
	require.NoError(t, e.LoadAs("a", rules.Set{}))
	assert.Equal(t, map[string]float64{"r": 2}, active(e))
	assert.Zero(t, enter(e, "r", 5))
}

func TestNamesAreUniqueWithinAKind(t *testing.T) {
	e, _ := newEngine(t)
	require.NoError(t, e.Load(rules.Set{
		Flow:      []flow.Rule{{Name: "pay", Resource: "r", Limit: 5}},
		Isolation: []isolation.Rule{{Name: "pay", Resource: "r", Limit: 1}},
	}))
	guard, err := e.Entry(t.Context(), "r")
	require.NoError(t, err)
	_, err = e.Entry(t.Context(), "r")
	var block *core.BlockError
	require.ErrorAs(t, err, &block)
	assert.Equal(t, rules.KindIsolation, block.Kind)
	guard.Exit()
	assert.Equal(t, 4, enter(e, "r", 9), "then the rate is used up")

	err = e.Load(rules.Set{Flow: []flow.Rule{{Name: "pay", Resource: "r", Limit: 5}, {Name: "pay", Resource: "s", Limit: 5}}})
	assert.ErrorContains(t, err, `flow[1] "pay": name is taken by flow[0]`)
}
