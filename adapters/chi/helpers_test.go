package penstockchi_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const orders = "GET:/orders/{id}"

// newEngine returns an engine with these rules, on a clock that does not advance by itself.
func newEngine(tb testing.TB, ruleList ...flow.Rule) *core.Engine {
	tb.Helper()
	engine := core.New(core.Config{
		Clock:  clock.NewVirtual(time.Unix(1_000_000, 0)),
		Logger: slog.New(slog.DiscardHandler),
	})
	tb.Cleanup(engine.Close)
	require.NoError(tb, engine.Load(rules.Set{Flow: ruleList}))
	return engine
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

// get has a handler answer a request, and returns the status.
func get(handler http.Handler, method, path string) int {
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequest(method, path, http.NoBody))
	return response.Code
}

// requireCalled checks the names of the resources that calls were made of.
func requireCalled(t *testing.T, engine *core.Engine, names ...string) {
	t.Helper()
	assert.ElementsMatch(t, names, adaptertest.Called(engine))
}
