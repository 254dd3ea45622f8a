package nethttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

const orders = "GET:/orders/{id}"

// rateLimit returns a rule of so many calls a second.
func rateLimit(name, resource string, limit float64) flow.Rule {
	return flow.Rule{Name: name, Resource: resource, Limit: limit}
}

// guardOrders guards a mux that has the handler at "GET /orders/{id}".
// exact has Retry-After tell all clients the same.
var exact = nethttp.Spread{Share: -1}

func guardOrders(engine *core.Engine, options nethttp.Options, handler http.HandlerFunc) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", handler)
	options.Spread = exact
	return nethttp.Middleware(engine, options)(mux)
}

func TestStatusFromFiveHundredUpIsAFailure(t *testing.T) {
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		status  int
		failed  uint64
	}{
		{"nothing written", func(http.ResponseWriter, *http.Request) {}, 200, 0},
		{"body without a status", ok, 200, 0},
		{"no content", statusHandler(http.StatusNoContent), 204, 0},
		{"redirect", statusHandler(http.StatusFound), 302, 0},
		{"not found", statusHandler(http.StatusNotFound), 404, 0},
		{"own limit", statusHandler(http.StatusTooManyRequests), 429, 0},
		{"last of the client's errors", statusHandler(499), 499, 0},
		{"internal error", statusHandler(http.StatusInternalServerError), 500, 1},
		{"unavailable", statusHandler(http.StatusServiceUnavailable), 503, 1},
		{"first of two statuses", statusHandler(http.StatusAccepted, http.StatusBadGateway), 202, 0},
		{"failure, then success", statusHandler(http.StatusBadGateway, http.StatusOK), 502, 1},
		{"early hints come before the status", statusHandler(http.StatusEarlyHints, http.StatusBadGateway), 502, 1},
		{"status after a body", func(w http.ResponseWriter, r *http.Request) {
			ok(w, r)
			w.WriteHeader(http.StatusInternalServerError)
		}, 200, 0},
		{"status after an empty body", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(nil)
			w.WriteHeader(http.StatusInternalServerError)
		}, 200, 0},
		{"status after a flush", func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			w.WriteHeader(http.StatusInternalServerError)
		}, 200, 0},
		{"status after copying nothing", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.(io.ReaderFrom).ReadFrom(http.NoBody)
			w.WriteHeader(http.StatusInternalServerError)
		}, 500, 1},
		{"status after copying something", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.(io.ReaderFrom).ReadFrom(io.LimitReader(endless{}, 10))
			w.WriteHeader(http.StatusInternalServerError)
		}, 200, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			engine, _ := newEngine(t, core.Config{})
			server := serve(t, guardOrders(engine, nethttp.Options{}, test.handler))
			assert.Equal(t, test.status, get(t, server, "/orders/7").status)
			assert.Equal(t, test.failed, adaptertest.RequireEnded(t, engine, orders, 1).Failed)
		})
	}
}

func statusHandler(statuses ...int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, status := range statuses {
			w.WriteHeader(status)
		}
	}
}

// endless is a reader of infinitely many 'x'.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestPanicIsAFailureAndIsPassedOn(t *testing.T) {
	for name, value := range map[string]any{"of the handler": "boom", "to abort": http.ErrAbortHandler} {
		t.Run(name, func(t *testing.T) {
			engine, _ := newEngine(t, core.Config{})
			guarded := guardOrders(engine, nethttp.Options{}, func(http.ResponseWriter, *http.Request) { panic(value) })
			recovered := make(chan any, 1)
			server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() {
					recovered <- recover()
					w.WriteHeader(http.StatusTeapot)
				}()
				guarded.ServeHTTP(w, r)
			}))
			assert.Equal(t, http.StatusTeapot, get(t, server, "/orders/7").status)
			assert.Equal(t, value, <-recovered)
			assert.EqualValues(t, 1, adaptertest.RequireEnded(t, engine, orders, 1).Failed)
		})
	}
}

func TestServerRecoversAPanicByItself(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	server := serve(t, guardOrders(engine, nethttp.Options{}, func(http.ResponseWriter, *http.Request) { panic("boom") }))
	_, err := server.Client().Get(server.URL + "/orders/7") //nolint:bodyclose // there is no response
	require.ErrorIs(t, err, io.EOF, "the server drops the connection")
	assert.EqualValues(t, 1, adaptertest.RequireEnded(t, engine, orders, 1).Failed)
}

// queue is a rule that lets one call a second pass and the others wait.
func queue() flow.Rule {
	return flow.Rule{Name: "turns", Resource: orders, Limit: 1, Algorithm: flow.Throttle, MaxWait: time.Minute}
}

func TestClientThatDisconnectsWhileWaitingIsLoggedAs499(t *testing.T) {
	engine, virtual := newEngine(t, core.Config{}, queue())
	guarded := guardOrders(engine, nethttp.Options{}, ok)
	statuses := make(chan int, 2)
	server := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		log := httptest.NewRecorder()
		guarded.ServeHTTP(log, r)
		statuses <- log.Code
	}))
	get(t, server, "/orders/1")
	assert.Equal(t, http.StatusOK, <-statuses)

	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/orders/2", http.NoBody)
		_, err := server.Client().Do(request) //nolint:bodyclose // there is no response
		gone <- err
	}()
	require.Eventually(t, func() bool { return virtual.Timers() == 1 }, eventTimeout, time.Millisecond)
	leave()
	require.ErrorIs(t, <-gone, context.Canceled)
	assert.Equal(t, 499, <-statuses)
	assert.Zero(t, adaptertest.RequireEnded(t, engine, orders, 1).Waiting)
}

func TestRefusingAllocatesNothing(t *testing.T) {
	for name, options := range map[string]nethttp.Options{
		"by default":  {},
		"of a caller": {Origin: func(r *http.Request) string { return r.Host }},
		"no fields":   {Fields: nethttp.Fields{Never: true}},
		"answered by the program": {Blocked: func(w http.ResponseWriter, _ *http.Request, _ *core.BlockError) {
			w.WriteHeader(http.StatusTooManyRequests)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			engine, _ := newEngine(t, core.Config{}, rateLimit("reads", orders, 0))
			handler := nethttp.Middleware(engine, options)(http.HandlerFunc(ok))
			request := httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody)
			request.Pattern = "GET /orders/{id}"
			writer := adaptertest.NewDiscardWriter()
			assert.Zero(t, testing.AllocsPerRun(1000, func() { handler.ServeHTTP(writer, request) }))
		})
	}
}

func TestPassingAllocatesNothingButTheRecorder(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, rateLimit("reads", orders, 1e9))
	handler := nethttp.Middleware(engine, nethttp.Options{
		Origin: func(r *http.Request) string { return r.Host },
	})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	request := httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody)
	request.Pattern = "GET /orders/{id}"
	writer := adaptertest.NewDiscardWriter()
	handler.ServeHTTP(writer, request)
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, func() { handler.ServeHTTP(writer, request) }), 1.0)
}
