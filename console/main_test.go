package console_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/console"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(pagesOf); address != "" {
		openPages(address)
		return
	}
	goleak.VerifyTestMain(m)
}

// newEngine returns an engine with the rules of a document.
func newEngine(t *testing.T, document string) *core.Engine {
	t.Helper()
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(engine.Close)
	set, err := rules.Parse("rules.yaml", []byte(document))
	require.NoError(t, err)
	require.NoError(t, engine.Load(set))
	return engine
}

// serve starts a console and returns its URL.
func serve(t testing.TB, o console.Options) string {
	t.Helper()
	server := httptest.NewServer(console.Handler(o))
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return server.URL
}

// send sends a request that change may change, and returns the status, the header and the body.
func send(t *testing.T, method, url, body string, change func(*http.Request)) (int, http.Header, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	if change != nil {
		change(request)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, response.Header, string(text)
}

// watch reads a stream until it has told something that holds wanted, and returns that.
func watch(t *testing.T, url, wanted string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	var seen strings.Builder
	buffer := make([]byte, 32<<10)
	for {
		n, err := response.Body.Read(buffer)
		seen.Write(buffer[:n])
		if strings.Contains(seen.String(), wanted) {
			return seen.String()
		}
		require.NoError(t, err, "it has told: %.2000s", seen.String())
	}
}
