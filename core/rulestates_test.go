package core_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestRuleStatesHaveASharedRuleOnceAndOnlyTheRulesAskedFor(t *testing.T) {
	e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, MaxResources: 2})
	defer e.Close()
	require.NoError(t, e.Load(rules.Set{
		Flow: []flow.Rule{{Name: "rate", Match: "*", Limit: 5}},
		Isolation: []isolation.Rule{
			{Name: "own", Match: "*", Limit: 1},
			{Name: "together", Match: "n*", Shared: true, Limit: 9},
		},
	}))
	states := func() (found []string) {
		places := func(r rule.Rule) bool { return r.Key().Kind == rules.KindIsolation }
		for resource, of := range e.RuleStates(places) {
			found = append(found, fmt.Sprint(resource, " ", of.Name, " ", of.Gauges[0]))
		}
		return found
	}
	e.Resource("n1")
	guard, err := e.Entry(t.Context(), "n2")
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"n1 own 0", "n2 own 1", "n* together 1"}, states())

	guard.Exit()
	guard, err = e.Entry(t.Context(), "n3")
	require.NoError(t, err)
	defer guard.Exit()
	assert.ElementsMatch(t, []string{"n1 own 0", "n2 own 0", "n* together 1", rule.OtherResources + " own 1"}, states())

	for range e.RuleStates(func(rule.Rule) bool { return true }) {
		break // which a caller may do
	}
	e.Close()
	assert.Empty(t, states())
}
