package penstockgin_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	goleak.VerifyTestMain(m)
}

const orders = "GET:/orders/:id"

// eventTimeout is how long a test waits for an expected event.
const eventTimeout = 2 * time.Minute

// newEngine returns an engine with these rules, on a clock that does not advance by itself.
func newEngine(tb testing.TB, config core.Config, ruleList ...flow.Rule) (*core.Engine, *clock.Virtual) {
	tb.Helper()
	virtual := clock.NewVirtual(time.Unix(1_000_000, 0))
	config.Clock = virtual
	config.Logger = slog.New(slog.DiscardHandler)
	engine := core.New(config)
	tb.Cleanup(engine.Close)
	require.NoError(tb, engine.Load(rules.Set{Flow: ruleList}))
	return engine, virtual
}

// rateLimit returns a rule of so many calls a second.
func rateLimit(name, resource string, limit float64) flow.Rule {
	return flow.Rule{Name: name, Resource: resource, Limit: limit}
}

// router returns a gin engine with recovery, the guard, and a handler at
// "/orders/:id".
func router(engine *core.Engine, options penstockgin.Options, handler gin.HandlerFunc) *gin.Engine {
	r := gin.New()
	r.Use(gin.RecoveryWithWriter(io.Discard), penstockgin.Middleware(engine, options))
	r.GET("/orders/:id", handler)
	return r
}

// bareStatus returns the status that gin answers with when nothing guards a handler.
func bareStatus(t *testing.T, handler gin.HandlerFunc) int {
	t.Helper()
	r := gin.New()
	r.Use(gin.RecoveryWithWriter(io.Discard))
	r.GET("/orders/:id", handler)
	return get(t, adaptertest.ServeHandler(t, r), "/orders/7").status
}

func ok(c *gin.Context) { c.String(http.StatusOK, "ok") }

// answer is a response, read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

func get(t *testing.T, server *httptest.Server, path string) answer {
	t.Helper()
	return do(t, server, http.MethodGet, path)
}

// do may be called from any goroutine, and so may get.
func do(t *testing.T, server *httptest.Server, method, path string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, http.NoBody)
	if !assert.NoError(t, err) {
		return answer{}
	}
	response, err := server.Client().Do(request)
	if !assert.NoError(t, err) {
		return answer{}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	assert.NoError(t, err)
	return answer{response.StatusCode, response.Header, string(body)}
}
