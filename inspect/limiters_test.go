package inspect_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
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

	require.NoError(t, engine.Control(rule.Key{Kind: rules.KindBreaker, Name: "pay-errors"}, breaker.Closed))
	var released inspect.Status
	ask(t, server, http.MethodGet, "/status", &released)
	for _, l := range released.Limiters {
		assert.NotEqual(t, breaker.Open, l.State)
	}
}
