package nethttp_test

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
	"github.com/penstock-go/penstock/stat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eventTimeout is how long a test waits for an expected event.
const eventTimeout = 2 * time.Minute

// newEngine returns an engine with these rules, on a clock that does not advance by itself.
func newEngine(tb testing.TB, config core.Config, ruleList ...flow.Rule) (*core.Engine, *clock.Virtual) {
	tb.Helper()
	virtual := clock.NewVirtual(time.Unix(1_000_000, 0))
	config.Clock = virtual
	config.Logger = discardLogger()
	engine := core.New(config)
	tb.Cleanup(engine.Close)
	require.NoError(tb, engine.Load(rules.Set{Flow: ruleList}))
	return engine, virtual
}

func discardLogger() *slog.Logger { return slog.New(slog.DiscardHandler) }

// serve starts a server and returns it with its client, which follows no
// redirects.
func serve(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	server := adaptertest.ServeHandler(t, handler)
	server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return server
}

// answer is a response, read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

// get may be called from any goroutine, and so may do.
func get(t *testing.T, server *httptest.Server, path string) answer {
	t.Helper()
	return do(t, server, http.MethodGet, path)
}

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

// ok answers 200.
func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

func totals(engine *core.Engine, resource string) stat.Totals {
	return engine.Resource(resource).Snapshot().Totals
}
