package inspect_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestStatusShowsTheStatesOfRules(t *testing.T) {
	engine, server := newEngine(t)
	require.NoError(t, engine.Load(rules.Set{
		Flow:      []flow.Rule{{Resource: "a", Limit: 100}},
		Isolation: []isolation.Rule{{Name: "pool", Match: "*", Shared: true, Limit: 5}},
		Breaker: []breaker.Rule{
			{Name: "a-errors", Resource: "a", Strategy: breaker.ErrorCount, Threshold: 1, MinCalls: 1},
			{Name: "pay-errors", Resource: "pay", Strategy: breaker.ErrorCount, Threshold: 1, MinCalls: 1},
		},
	}))
	underWay, err := engine.Entry(t.Context(), "a")
	require.NoError(t, err)
	defer underWay.Exit()
	failed, err := engine.Entry(t.Context(), "pay")
	require.NoError(t, err)
	failed.Fail(errors.New("down"))
	failed.Exit()

	var status inspect.Status
	require.Equal(t, http.StatusOK, ask(t, server, http.MethodGet, "/status", &status))
	require.Len(t, status.Limiters, 3, "the shared one once, rate limits not")
	open := status.Limiters[0]
	assert.Equal(t, inspect.Limiter{
		Resource: "pay", Kind: rules.KindBreaker, Rule: "pay-errors", State: breaker.Open, Gauges: open.Gauges,
	}, open, "what is not closed comes first")
	assert.Equal(t, "*", status.Limiters[1].Resource)
	assert.Equal(t, inspect.Gauge{Name: "in_flight", Value: 1}, status.Limiters[1].Gauges[0])
	assert.Equal(t, breaker.Closed, status.Limiters[2].State)

	require.NoError(t, engine.Control(core.Scope{Kind: rules.KindBreaker, Rule: "pay-errors"}, breaker.Closed))
	var released inspect.Status
	ask(t, server, http.MethodGet, "/status", &released)
	for _, l := range released.Limiters {
		assert.NotEqual(t, breaker.Open, l.State)
	}
}

// Users are shown as they are, or as hashes where the rule masks them, in the status and
// in explanations.
func TestMaskedValuesAreNotShown(t *testing.T) {
	engine, server := newEngine(t)
	require.NoError(t, engine.Load(rules.Set{HotParam: []hotparam.Rule{
		{Name: "shown", Resource: "orders", Param: rule.StringsOf("user"), Limit: 2},
		{Name: "masked", Resource: "orders", Param: rule.StringsOf("user"), Limit: 9, Mask: rule.MaskHash},
	}}))
	for _, user := range []string{"alice", "alice", "alice", "bob"} {
		call(t, engine, "orders", user, 1)
	}
	var status inspect.Status
	require.Equal(t, http.StatusOK, ask(t, server, http.MethodGet, "/status", &status))
	require.Len(t, status.Limiters, 2)
	masked, shown := status.Limiters[0], status.Limiters[1]
	assert.Equal(t, []inspect.Value{{Value: "alice", Passed: 2, Refused: 1}, {Value: "bob", Passed: 1}}, shown.Values)
	assert.Equal(t, inspect.Gauge{Name: "values", Value: 2}, shown.Gauges[0])
	require.Len(t, masked.Values, 2)
	assert.Regexp(t, `^#[0-9a-f]{16}$`, masked.Values[0].Value)
	for _, r := range explain(t, server, inspect.Call{Resource: "orders", Attributes: map[string]string{"user": "bob"}}).Rules {
		assert.Equal(t, []inspect.Attribute{{Key: "user", Type: "text", Value: "bob"}}, r.Attributes)
		assert.Zero(t, r.State.RetryAfter)
		assert.Equal(t, r.Name == "shown", slices.ContainsFunc(r.State.Values, func(v inspect.Value) bool { return v.Value == "alice" }))
	}
	for _, r := range explain(t, server, inspect.Call{Resource: "orders", Attributes: map[string]string{"user": "alice"}}).Rules {
		if r.Name == "shown" {
			assert.InDelta(t, 0.5, r.State.RetryAfter, 0.001, "a token of two a second")
		}
	}
}
