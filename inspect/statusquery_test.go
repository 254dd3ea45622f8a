package inspect_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rules"
)

func TestStatusLeavesOutLimitersInTheirFirstState(t *testing.T) {
	engine := core.New(core.Config{})
	t.Cleanup(engine.Close)
	set, err := rules.Parse("", []byte(`
breaker: [{name: a, match: "*", threshold: 0.5}, {name: b, match: "*", threshold: 0.5}]
isolation: [{name: c, match: "*", limit: 5}]
`))
	require.NoError(t, err)
	require.NoError(t, engine.Load(set))
	guard, err := engine.Entry(t.Context(), "orders")
	require.NoError(t, err)
	guard.Exit()
	require.NoError(t, engine.Control(core.Scope{Kind: "breaker", Rule: "b"}, "open"))
	ask := func(query string) (status inspect.Status, code int) {
		answer := httptest.NewRecorder()
		inspect.Handler(engine, inspect.Options{}).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/status"+query, http.NoBody))
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &status))
		return status, answer.Code
	}
	all, _ := ask("")
	assert.Len(t, all.Limiters, 3)
	changed, _ := ask("?limiters=changed")
	require.Len(t, changed.Limiters, 1)
	assert.Equal(t, all.Limiters[0], changed.Limiters[0])
	assert.Equal(t, "b", changed.Limiters[0].Rule)
	assert.Equal(t, all.Rules, changed.Rules)
	_, code := ask("?limiters=open")
	assert.Equal(t, http.StatusBadRequest, code)
}
