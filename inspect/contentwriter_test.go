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
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rules"
)

// contentWriter takes an answer as a value.
type contentWriter struct {
	httptest.ResponseRecorder
	code    int
	content any
}

func (w *contentWriter) WriteContent(code int, content any) { w.code, w.content = code, content }

// Whoever takes values gets what others get as JSON.
func TestContentIsWhatTheJSONSays(t *testing.T) {
	engine := core.New(core.Config{Clock: clock.NewVirtual(time.Unix(1e9, 0))})
	t.Cleanup(engine.Close)
	set, err := rules.Parse("", []byte(`
flow: [{name: rate, match: "*", limit: 1}]
breaker: [{name: errors, match: "*", threshold: 0.5}]
hotParam: [{name: users, match: "*", param: user, limit: 5}]
`))
	require.NoError(t, err)
	require.NoError(t, engine.Load(set))
	for range 3 {
		if guard, err := engine.Entry(t.Context(), "orders", core.String("user", "u1")); err == nil {
			guard.Exit()
		}
	}
	handler := inspect.Handler(engine, inspect.Options{})
	for _, path := range []string{
		"/status", "/status?limiters=changed", "/status?limiters=open", "/limiters", "/ready", "/explain?resource=orders",
		"/resources", "/resources?seconds=true", "/resources?limit=x", "/resources/orders", "/resources/none", "/events", "/events?since=x",
		"/quotas", "/value?kind=hotParam&rule=users&attr=user%3Du1", "/none",
	} {
		ask := func(w http.ResponseWriter) {
			handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		}
		plain, direct := httptest.NewRecorder(), new(contentWriter)
		ask(plain)
		ask(direct)
		require.Equal(t, plain.Code, direct.code, path)
		text, err := json.Marshal(direct.content)
		require.NoError(t, err, path)
		assert.JSONEq(t, plain.Body.String(), string(text), path)
	}
}
