package inspect_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/recording"
)

// recorded returns an engine on a virtual clock that has recorded two calls, if it records.
func recorded(t *testing.T, config core.Config) (*core.Engine, *clock.Virtual) {
	t.Helper()
	c := clock.NewVirtual(time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC))
	config.Clock, config.Logger = c, slog.New(slog.DiscardHandler)
	e := core.New(config)
	t.Cleanup(e.Close)
	callOnce(t, e)
	c.Advance(time.Minute)
	callOnce(t, e)
	return e, c
}

func callOnce(t *testing.T, e *core.Engine) {
	t.Helper()
	guard, err := e.Entry(t.Context(), "r")
	require.NoError(t, err)
	guard.Exit()
}

func askRecording(t *testing.T, h http.Handler, query string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/recording"+query, http.NoBody))
	return w.Code, w.Body.String()
}

func TestRecordingsAreGivenOnlyWhereThatIsAllowed(t *testing.T) {
	t.Parallel()
	e, _ := recorded(t, core.Config{Recorder: &core.Recorder{}})
	code, body := askRecording(t, inspect.Handler(e, inspect.Options{}), "?last=60s")
	assert.Equal(t, http.StatusForbidden, code)
	assert.Contains(t, body, "inspect.Options")

	code, body = askRecording(t, inspect.Handler(e, inspect.Options{Recordings: true, Name: "web-1"}), "?last=30s")
	require.Equal(t, http.StatusOK, code)
	got, err := recording.Read(strings.NewReader(body))
	require.NoError(t, err)
	assert.Len(t, got.Calls, 1)
	assert.Equal(t, "web-1", got.Instances[0].Name)

	guarded := inspect.Handler(e, inspect.Options{Recordings: true, Name: "web-1", Tokens: []string{"secret"}})
	code, _ = askRecording(t, guarded, "?last=30s")
	assert.Equal(t, http.StatusUnauthorized, code)
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/debug/recording?last=2m", http.NoBody)
	request.Header.Set("Authorization", "Bearer secret")
	w := httptest.NewRecorder()
	guarded.ServeHTTP(w, request)
	got, err = recording.Read(w.Body)
	require.NoError(t, err)
	assert.Len(t, got.Calls, 2)
}

func TestRecordingOfTheCallsToCome(t *testing.T) {
	t.Parallel()
	e, c := recorded(t, core.Config{})
	h := inspect.Handler(e, inspect.Options{Recordings: true, Name: "web-1"})
	code, body := askRecording(t, h, "?last=60s")
	assert.Equal(t, http.StatusConflict, code)
	assert.Contains(t, body, "core.Config.Recorder")

	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	go func() {
		for c.Timers() == 0 { // until it records
			time.Sleep(time.Millisecond)
		}
		guard, err := e.Entry(context.Background(), "r")
		if assert.NoError(t, err) {
			guard.Exit()
		}
		c.Advance(time.Minute)
	}()
	response, err := http.Get(server.URL + "/recording?for=60s") //nolint:noctx // a test
	require.NoError(t, err)
	defer response.Body.Close()
	got, err := recording.Read(response.Body)
	require.NoError(t, err)
	assert.Len(t, got.Calls, 1)
}

func TestMistakesInRequestsForRecordingsAreTold(t *testing.T) {
	t.Parallel()
	e, _ := recorded(t, core.Config{Recorder: &core.Recorder{}})
	h := inspect.Handler(e, inspect.Options{Recordings: true})
	for query, want := range map[string]string{
		"": "either for=60s", "?for=1s&last=1s": "either for=60s", "?for=": "for is \"\"", "?last=-1s": "at most 10m0s", "?for=11m": "at most 10m0s",
		"?four=1s": "four", "?for=1s&for=2s": "for", "?for=%zz": "invalid URL escape",
	} {
		code, body := askRecording(t, h, query)
		assert.Equal(t, http.StatusBadRequest, code, query)
		var failure inspect.Failure
		require.NoError(t, json.Unmarshal([]byte(body), &failure))
		assert.Contains(t, failure.Error, want, query)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/recording?last=1s", io.NopCloser(strings.NewReader(""))))
	assert.Equal(t, http.StatusMethodNotAllowed, w.Code)
}

// A handler records for four clients at a time; one that leaves makes room.
func TestRecordingsOfAHandlerAreBounded(t *testing.T) {
	t.Parallel()
	e, c := recorded(t, core.Config{})
	server := httptest.NewServer(inspect.Handler(e, inspect.Options{Recordings: true}))
	t.Cleanup(server.Close)
	ask := func(ctx context.Context) (*http.Response, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/recording?for=60s", http.NoBody)
		if err != nil {
			return nil, err
		}
		return http.DefaultClient.Do(request)
	}
	ctx, leave := context.WithCancel(t.Context())
	for range 4 {
		go func() {
			if response, err := ask(ctx); err == nil {
				response.Body.Close()
			}
		}()
	}
	require.Eventually(t, func() bool { return c.Timers() == 4 }, time.Minute, time.Millisecond)
	response, err := ask(t.Context())
	require.NoError(t, err)
	response.Body.Close()
	assert.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	leave()
	require.Eventually(t, func() bool { return c.Timers() == 0 }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { _, err := e.Recorded(time.Minute); return err != nil }, time.Minute, time.Millisecond)
}
