package inspect_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rules"
)

// quotaService returns an engine on a virtual clock with limits, some of which are used.
func quotaService(t *testing.T) (*core.Engine, *clock.Virtual) {
	t.Helper()
	c := clock.NewVirtual(time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC))
	e := core.New(core.Config{Clock: c})
	t.Cleanup(e.Close)
	set, err := rules.Parse("", []byte(`
flow:
  - {name: contract, resource: search, limit: 100, window: 1mo, timeZone: Europe/Berlin}
  - {name: rate, match: "*", perResource: false, limit: 50, onExceed: demote}
hotParam:
  - {name: plan, match: "*", perResource: false, param: tenant, limit: 10, window: 1d}
  - {name: user, resource: search, param: [tenant, user], limit: 3, window: 1m}
isolation:
  - {name: pool, resource: search, limit: 5}
`))
	require.NoError(t, err)
	require.NoError(t, e.Load(set))
	for range 3 {
		g, err := e.Entry(t.Context(), "search", core.String("tenant", "acme"), core.String("user", "u1"))
		require.NoError(t, err)
		g.Exit()
	}
	return e, c
}

func TestQuotasTellWhatIsUsedAndLeft(t *testing.T) {
	e, _ := quotaService(t)
	found, err := inspect.QuotasOf(e, inspect.RuleQuery{})
	require.NoError(t, err)
	require.Len(t, found.Quotas, 2, "limits for each value need a value")
	contract := found.Quotas[0]
	assert.Equal(t, "contract", contract.Rule)
	assert.InDelta(t, 100, contract.Limit, 0)
	assert.InDelta(t, 3, *contract.Used, 0)
	assert.EqualValues(t, 97, contract.Remaining)
	assert.Equal(t, time.Date(2026, 3, 31, 22, 0, 0, 0, time.UTC), contract.ResetsAt.UTC(), "at midnight in Berlin")
	assert.Equal(t, []any{"rate", "*", int64(47)}, []any{found.Quotas[1].Rule, found.Quotas[1].Resource, found.Quotas[1].Remaining})

	of := inspect.RuleQuery{Attributes: map[string]string{"tenant": "acme", "user": "u1"}}
	found, err = inspect.QuotasOf(e, of)
	require.NoError(t, err)
	require.Len(t, found.Quotas, 4)
	plan := found.Quotas[2]
	assert.Equal(t, []any{"plan", "acme", int64(7), 3.0}, []any{plan.Rule, plan.Value, plan.Remaining, *plan.Used})
	assert.Equal(t, []any{"user", "search", int64(0)}, []any{found.Quotas[3].Rule, found.Quotas[3].Resource, found.Quotas[3].Remaining})

	found, err = inspect.QuotasOf(e, inspect.RuleQuery{Rule: "plan", Attributes: map[string]string{"tenant": "other"}})
	require.NoError(t, err)
	require.Len(t, found.Quotas, 1)
	assert.EqualValues(t, 10, found.Quotas[0].Remaining)
	assert.Zero(t, found.Quotas[0].ResetsAt)
}

// Of a bucket more may be left than the limit: used is what it lacks of being full.
func TestQuotasOfBucketsTellWhatTheyLack(t *testing.T) {
	e := core.New(core.Config{Clock: clock.NewVirtual(time.Unix(1_700_000_000, 0))})
	t.Cleanup(e.Close)
	require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{{Resource: "r", Limit: 10, Algorithm: flow.TokenBucket, Burst: 20}}}))
	for range 3 {
		g, err := e.Entry(t.Context(), "r")
		require.NoError(t, err)
		g.Exit()
	}
	found, err := inspect.QuotasOf(e, inspect.RuleQuery{})
	require.NoError(t, err)
	require.Len(t, found.Quotas, 1)
	assert.EqualValues(t, 17, found.Quotas[0].Remaining)
	require.NotNil(t, found.Quotas[0].Used)
	assert.InDelta(t, 3, *found.Quotas[0].Used, 0)
}

func TestQuotasSayWhatAQueryLacks(t *testing.T) {
	e, _ := quotaService(t)
	_, err := inspect.QuotasOf(e, inspect.RuleQuery{Rule: "user", Attributes: map[string]string{"tenant": "acme"}})
	require.ErrorContains(t, err, "say which value of user")
	_, err = inspect.QuotasOf(e, inspect.RuleQuery{Rule: "plans"})
	require.ErrorContains(t, err, `no rule "plans"`)

	handler := inspect.Handler(e, inspect.Options{})
	get := func(query string) (int, string) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/quotas?"+query, nil))
		return w.Code, w.Body.String()
	}
	query := inspect.RuleQuery{Rule: "user", Attributes: map[string]string{"tenant": "acme", "user": "u1"}}.Query().Encode()
	code, body := get(query)
	assert.Equal(t, http.StatusOK, code)
	var found inspect.Quotas
	require.NoError(t, json.Unmarshal([]byte(body), &found))
	require.Len(t, found.Quotas, 1)
	assert.NotContains(t, body, `"attributes"`)
	for query, want := range map[string]int{
		"rule=user":             http.StatusUnprocessableEntity,
		"rule=nothing":          http.StatusUnprocessableEntity,
		"what=user":             http.StatusBadRequest,
		"rule=a&rule=b":         http.StatusBadRequest,
		"attr=tenant":           http.StatusBadRequest,
		"kind=flow&rule=rate":   http.StatusOK,
		"kind=breaker":          http.StatusOK,
		"kind=hotParam&rule=no": http.StatusUnprocessableEntity,
	} {
		code, _ := get(query)
		assert.Equal(t, want, code, query)
	}
}
