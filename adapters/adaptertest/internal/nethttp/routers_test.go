package nethttp_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
)

// routers are handlers of "/orders/{id}" inside of a middleware that do what
// routers do with the request.
func routers() map[string]func(use func(http.Handler) http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", ok)
	return map[string]func(use func(http.Handler) http.Handler) http.Handler{
		// A wrapper that nobody can look through. The mux sets the pattern of the
		// request that the middleware has too.
		"logging wrapper around a mux": func(use func(http.Handler) http.Handler) http.Handler {
			return use(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { mux.ServeHTTP(w, r) }))
		},
		// The pattern is set on a copy.
		"wrapper that copies the request": func(use func(http.Handler) http.Handler) http.Handler {
			return use(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { mux.ServeHTTP(w, r.Clone(r.Context())) }))
		},
		// A mux that routes by another path than that of the request.
		"mux that is embedded and gets another path": func(use func(http.Handler) http.Handler) http.Handler {
			inner := http.NewServeMux()
			inner.HandleFunc("GET /v1/orders/{id}", ok)
			return use(prefixingMux{inner})
		},
		// As chi does: what was routed is in a value of the context that is there
		// before the middlewares, and in the pattern when the handler is called.
		"router with middlewares before it routes": func(use func(http.Handler) http.Handler) http.Handler {
			routed := use(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				*r.Context().Value(routeKey{}).(*string) = "/orders/{id}"
				r.Pattern = "/orders/{id}"
				ok(w, r)
			}))
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				routed.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), routeKey{}, new(string))))
			})
		},
		// As gorilla/mux and echo do: the route is known, but not as the pattern.
		"router that keeps its route to itself": func(use func(http.Handler) http.Handler) http.Handler {
			routed := use(http.HandlerFunc(ok))
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				route := "/orders/{id}"
				routed.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), routeKey{}, &route)))
			})
		},
	}
}

type prefixingMux struct{ *http.ServeMux }

func (m prefixingMux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	inner := r.Clone(r.Context())
	inner.URL.Path = "/v1" + inner.URL.Path
	m.ServeMux.ServeHTTP(w, inner)
}

type routeKey struct{}

func routeOf(r *http.Request) string {
	route, _ := r.Context().Value(routeKey{}).(*string)
	if route == nil {
		return ""
	}
	return *route
}

func TestMiddlewareWithoutRoutesLogsAWarningOnce(t *testing.T) {
	for name, router := range routers() {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			engine, _ := newEngine(t, core.Config{})
			handler := router(nethttp.Middleware(engine, nethttp.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}))
			for range 3 {
				handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody))
			}
			assert.Equal(t, []string{nethttp.Unmatched}, adaptertest.Called(engine))
			assert.Equal(t, 1, strings.Count(log.String(), "level=WARN"), log.String())
			assert.Contains(t, log.String(), "set nethttp.Options.Resource")
		})
	}
}

func TestMiddlewareWithOuterRouteOnlyLogsAWarningOnce(t *testing.T) {
	inner := http.NewServeMux()
	inner.HandleFunc("GET /orders/{id}", ok)
	wrapped := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { inner.ServeHTTP(w, r) })
	for name, test := range map[string]struct {
		resource func(*http.Request) string
		warnings int
	}{
		"by default":   {nil, 1},
		"if wanted so": {nethttp.PatternResource(), 0},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			engine, _ := newEngine(t, core.Config{})
			outer := http.NewServeMux()
			outer.Handle("/orders/", nethttp.Middleware(engine, nethttp.Options{
				Resource: test.resource, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})(wrapped))
			for range 3 {
				outer.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody))
			}
			assert.Equal(t, []string{"GET:/orders/"}, adaptertest.Called(engine))
			assert.Equal(t, test.warnings, strings.Count(log.String(), "level=WARN"), log.String())
		})
	}
}

func TestMiddlewareAroundNestedMuxesLogsAWarningOnce(t *testing.T) {
	inner := http.NewServeMux()
	inner.HandleFunc("GET /v1/orders/{id}", ok)
	outer := http.NewServeMux()
	outer.Handle("/v1/", inner)
	var log bytes.Buffer
	engine, _ := newEngine(t, core.Config{})
	handler := nethttp.Middleware(engine, nethttp.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})(outer)
	for range 3 {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/orders/7", http.NoBody))
	}
	assert.Equal(t, []string{"GET:/v1/"}, adaptertest.Called(engine))
	assert.Equal(t, 1, strings.Count(log.String(), "level=WARN"), log.String())
	assert.Contains(t, log.String(), `pattern="GET /v1/orders/{id}"`)
}

func TestMiddlewareLogsNothingIfRoutesAreKnownOrNothingMatches(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", ok)
	mux.HandleFunc("GET /tree/", ok)
	wrapped := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { mux.ServeHTTP(w, r) })
	for name, test := range map[string]struct {
		guarded func(use func(http.Handler) http.Handler) http.Handler
		options nethttp.Options
		path    string
	}{
		"around the mux":          {func(use func(http.Handler) http.Handler) http.Handler { return use(mux) }, nethttp.Options{}, "/orders/7"},
		"twice around the mux":    {func(use func(http.Handler) http.Handler) http.Handler { return use(use(mux)) }, nethttp.Options{}, "/orders/7"},
		"redirect of the mux":     {func(use func(http.Handler) http.Handler) http.Handler { return use(mux) }, nethttp.Options{}, "/tree"},
		"not found":               {func(use func(http.Handler) http.Handler) http.Handler { return use(wrapped) }, nethttp.Options{}, "/nothing"},
		"resource of the program": {func(use func(http.Handler) http.Handler) http.Handler { return use(wrapped) }, nethttp.Options{Resource: nethttp.MuxResource(mux)}, "/orders/7"},
		"around the handler": {func(use func(http.Handler) http.Handler) http.Handler {
			outer := http.NewServeMux()
			outer.Handle("GET /orders/{id}", use(http.HandlerFunc(ok)))
			return outer
		}, nethttp.Options{}, "/orders/7"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			engine, _ := newEngine(t, core.Config{})
			test.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
			handler := test.guarded(nethttp.Middleware(engine, test.options))
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, test.path, http.NoBody))
			assert.Empty(t, log.String())
		})
	}
}

func TestRouteResourceWorksWithAnyRouter(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, rateLimit("reads", orders, 1))
	router := routers()["router that keeps its route to itself"]
	handler := router(nethttp.Middleware(engine, nethttp.Options{Resource: nethttp.RouteResource(routeOf)}))
	var statuses []int
	for range 4 {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody))
		statuses = append(statuses, recorder.Code)
	}
	assert.Equal(t, []int{200, 429, 429, 429}, statuses)
	assert.Equal(t, []string{orders}, adaptertest.Called(engine))
}

// loggingMux is a mux with something around it.
type loggingMux struct {
	*http.ServeMux
	log io.Writer
}

func (m loggingMux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(m.log, r.URL.Path)
	m.ServeMux.ServeHTTP(w, r)
}

func TestEmbeddedMuxIsUsed(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	mux := loggingMux{http.NewServeMux(), io.Discard}
	mux.HandleFunc("GET /orders/{id}", ok)
	get(t, serve(t, nethttp.Middleware(engine, nethttp.Options{})(mux)), "/orders/7")
	assert.Equal(t, []string{orders}, adaptertest.Called(engine))
}

// unwrapping is a ResponseWriter of another middleware.
type unwrapping struct{ http.ResponseWriter }

func (u unwrapping) Unwrap() http.ResponseWriter { return u.ResponseWriter }

func TestRequestThroughTwoMiddlewaresIsOneCall(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, rateLimit("reads", orders, 2))
	other, _ := newEngine(t, core.Config{})
	use := func(engine *core.Engine, resource string) func(http.Handler) http.Handler {
		return nethttp.Middleware(engine, nethttp.Options{Resource: func(*http.Request) string { return resource }})
	}
	between := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(unwrapping{w}, r) })
	}
	server := serve(t, use(engine, orders)(use(engine, "all")(between(use(other, orders)(use(engine, orders)(http.HandlerFunc(ok)))))))
	var statuses []int
	for range 3 {
		statuses = append(statuses, get(t, server, "/orders/7").status)
	}
	assert.Equal(t, []int{200, 200, 429}, statuses)
	assert.EqualValues(t, 2, adaptertest.RequireEnded(t, engine, orders, 2).Passed)
	assert.EqualValues(t, 2, adaptertest.RequireEnded(t, engine, "all", 2).Passed, "another resource")
	assert.EqualValues(t, 2, adaptertest.RequireEnded(t, other, orders, 2).Passed, "another engine")
}

func TestMiddlewareAroundItselfCountsARequestOnce(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, rateLimit("reads", orders, 2))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", ok)
	use := nethttp.Middleware(engine, nethttp.Options{})
	server := serve(t, use(use(use(mux))))
	var statuses []int
	for range 3 {
		statuses = append(statuses, get(t, server, "/orders/7").status)
	}
	assert.Equal(t, []int{200, 200, 429}, statuses)
	assert.Equal(t, []string{orders}, adaptertest.Called(engine), "and no call of another resource")
}
