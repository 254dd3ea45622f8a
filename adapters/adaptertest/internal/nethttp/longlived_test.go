package nethttp_test

import (
	"bufio"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
)

// hijackable is a writer whose connection can be taken over.
type hijackable struct{ *httptest.ResponseRecorder }

func (h hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }

func TestLongLivedResponsesAreNotSlow(t *testing.T) {
	for name, test := range map[string]struct {
		respond  func(w http.ResponseWriter)
		longLive bool
	}{
		"events":              {func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/event-stream; charset=utf-8") }, true},
		"EVENTS":              {func(w http.ResponseWriter) { w.Header().Set("Content-Type", "Text/Event-Stream") }, true},
		"switching protocols": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusSwitchingProtocols) }, true},
		"taken over":          {func(w http.ResponseWriter) { _, _, _ = http.NewResponseController(w).Hijack() }, true},
		"aborted events": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			panic(http.ErrAbortHandler)
		}, true},
		"JSON":         {func(w http.ResponseWriter) { w.Header().Set("Content-Type", "application/json") }, false},
		"another type": {func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/event-streams") }, false},
		"empty":        {func(http.ResponseWriter) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
				defer engine.Close()
				require.NoError(t, engine.Load(rules.Set{Breaker: []breaker.Rule{
					{Match: "*", Strategy: breaker.SlowRatio, SlowAfter: time.Second, Threshold: 1, MinCalls: 1},
				}}))
				mux := http.NewServeMux()
				mux.HandleFunc("GET /r", func(w http.ResponseWriter, _ *http.Request) {
					test.respond(w)
					_ = http.NewResponseController(w).Flush()
					time.Sleep(2 * time.Second)
				})
				guarded := nethttp.Middleware(engine, nethttp.Options{})(mux)
				get := func() int {
					w := httptest.NewRecorder()
					defer func() { _ = recover() }()
					// A client that asks for a stream, or says so, does not get to choose.
					request := httptest.NewRequest(http.MethodGet, "/r", http.NoBody)
					request.Header.Set("Accept", "text/event-stream")
					guarded.ServeHTTP(hijackable{w}, request)
					return w.Code
				}
				get()
				s := engine.Resource("GET:/r").Snapshot()
				assert.EqualValues(t, 1, s.Completed)
				assert.Equal(t, test.longLive, s.ResponseTime == 0)
				assert.Equal(t, !test.longLive, get() == http.StatusServiceUnavailable, "the breaker is open")
			})
		})
	}
}
