package penstockchi_test

import (
	"bytes"
	"cmp"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockchi "github.com/penstock-go/penstock/adapters/chi"
	"github.com/penstock-go/penstock/adapters/nethttp"
)

type use = func(http.Handler) http.Handler

// none is a middleware that does nothing.
func none(next http.Handler) http.Handler { return next }

// guards are the places at which a service may have the middleware.
type guards struct{ root, group, route, routeGroup, mount, mountGroup, handled use }

// service is a service with routers in routers. handler serves all of its routes.
func service(at guards, handler http.HandlerFunc) http.Handler {
	files := chi.NewRouter()
	files.Use(at.mount)
	files.Get("/", handler)
	files.Get("/{name}", handler)
	files.With(at.mountGroup).Get("/{name}/versions/{version}", handler)

	whole := chi.NewRouter()
	whole.Use(at.handled)
	whole.Get("/whole/{x}", handler)

	router := chi.NewRouter()
	router.Use(at.root)
	router.Group(func(r chi.Router) {
		r.Use(at.group)
		r.Get("/", handler)
		r.Get("/orders/{id}", handler)
		r.Post("/orders", handler)
		r.Handle("/any/{x}", handler)
		r.Get("/tree/*", handler)
		r.Get("/number/{n:[0-9]+}", handler)
	})
	router.Route("/v1", func(r chi.Router) {
		r.Use(at.route)
		r.Get("/items/{id}", handler)
		r.Group(func(r chi.Router) {
			r.Use(at.routeGroup)
			r.Get("/items/{id}/parts/{part}", handler)
			r.Mount("/files", files)
		})
	})
	router.Route("/{tenant}/of", func(r chi.Router) {
		r.Use(at.route)
		r.Get("/", handler)
		r.Get("/*", handler)
	})
	router.Handle("/whole/*", whole)
	router.Mount("/mux", handler)
	return router
}

var paths = []string{
	"/", "/orders/7", "/orders/a%2Fb", "/orders/", "/orders", "/any/7", "/tree/", "/tree/a/b", "/number/7", "/number/x",
	"/v1", "/v1/", "/v1/items/7", "/v1/items/7/parts/8", "/v1/items/a%2Fb/parts/%2F", "/v1/nothing",
	"/v1/files", "/v1/files/", "/v1/files/a", "/v1/files/a/versions/3", "/v1/files/a/nothing",
	"/acme/of", "/acme/of/", "/acme/of/a/b", "/ac%2Fme/of/a%2Fb", "/whole/7", "/whole/7/8", "/mux", "/mux/", "/mux/a", "/nothing", "//", "//orders/7",
}

// placed returns the guards of a service that has the middleware at some of the places.
func placed(middleware use, places string) guards {
	at := func(place string) use {
		if strings.Contains(places, place) {
			return middleware
		}
		return none
	}
	return guards{at("root"), at("agroup"), at("route "), at("routeGroup"), at("mount "), at("mountGroup"), at("handled")}
}

// Whatever route serves a request, its name is the pattern that chi tells afterwards; and a
// request that no handler serves is unmatched.
func TestResourceIsTheRouteThatServesWhereverTheMiddlewareStands(t *testing.T) {
	guarded := 0
	for _, places := range []string{
		"root", "agroup", "route ", "routeGroup", "mount ", "mountGroup", "handled", "root agroup route routeGroup mount mountGroup handled", "around",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "MADE-UP"} {
			for _, path := range paths {
				engine := newEngine(t)
				var log bytes.Buffer
				m := penstockchi.Middleware(engine, nethttp.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
				want := nethttp.Unmatched
				handler := service(placed(m, places), func(_ http.ResponseWriter, r *http.Request) {
					want = strings.Replace(r.Method, "MADE-UP", "OTHER", 1) + ":" + cmp.Or(chi.RouteContext(r.Context()).RoutePattern(), "/")
				})
				if places == "around" {
					handler = m(handler)
				}
				get(handler, method, path)
				names := adaptertest.Called(engine)
				if len(names) > 0 || places == "root" || places == "around" {
					assert.Equal(t, []string{want}, names, "%s: %s %s", places, method, path)
					guarded++
				}
				assert.Empty(t, log.String(), "%s: %s %s", places, method, path)
			}
		}
	}
	assert.Greater(t, guarded, 300, "requests that came to a middleware")
}

func TestMethodThatTheRouteDoesNotHaveIsUnmatched(t *testing.T) {
	engine := newEngine(t)
	handler := service(placed(penstockchi.Middleware(engine, nethttp.Options{}), "root"), ok)
	assert.Equal(t, http.StatusMethodNotAllowed, get(handler, http.MethodPost, "/orders/7"))
	assert.Equal(t, http.StatusMethodNotAllowed, get(handler, http.MethodOptions, "/v1/files/a"))
	requireCalled(t, engine, nethttp.Unmatched)
}

func TestGetHeadAndStripSlashesBeforeTheMiddlewareAreFollowed(t *testing.T) {
	engine := newEngine(t)
	router := chi.NewRouter()
	router.Use(middleware.StripSlashes, middleware.GetHead, penstockchi.Middleware(engine, nethttp.Options{}))
	router.Route("/v1", func(r chi.Router) { r.Get("/orders/{id}", ok) })
	assert.Equal(t, http.StatusOK, get(router, http.MethodHead, "/v1/orders/7/"))
	requireCalled(t, engine, "GET:/v1/orders/{id}")
}

func TestMiddlewareWarnsOnceIfAnotherRouteServesThanTheNamedOne(t *testing.T) {
	for name, build := range map[string]func(m use) http.Handler{
		"path that changes later": func(m use) http.Handler {
			router := chi.NewRouter()
			router.Use(m, middleware.StripSlashes)
			router.Get("/orders/{id}", ok)
			return router
		},
		"method that changes later": func(m use) http.Handler {
			router := chi.NewRouter()
			router.Use(m, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					chi.RouteContext(r.Context()).RouteMethod = "GET"
					next.ServeHTTP(w, r)
				})
			})
			router.Get("/orders/{id}/", ok)
			router.Post("/orders/{id}/", ok)
			router.Method(http.MethodPut, "/orders/{id}/", http.HandlerFunc(ok))
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Method = http.MethodPut
				router.ServeHTTP(w, r)
			})
		},
		"router that is wrapped": func(m use) http.Handler {
			inner := chi.NewRouter()
			inner.Get("/{id}/", ok)
			router := chi.NewRouter()
			router.Use(m)
			router.Mount("/orders", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { inner.ServeHTTP(w, r) }))
			return router
		},
		"route at the path of a mounted router that is not listed": func(m use) http.Handler {
			router := chi.NewRouter()
			router.Use(m, middleware.StripSlashes)
			router.Mount("/orders/7", chi.NewRouter())
			router.Get("/orders/7", ok)
			return router
		},
		"outside of chi": func(m use) http.Handler {
			router := chi.NewRouter()
			router.Get("/orders/{id}/", ok)
			return m(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { router.ServeHTTP(w, r.Clone(r.Context())) }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			handler := build(penstockchi.Middleware(newEngine(t), nethttp.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}))
			for range 3 {
				assert.Equal(t, http.StatusOK, get(handler, http.MethodGet, "/orders/7/"))
			}
			assert.Equal(t, 1, strings.Count(log.String(), "level=WARN"), log.String())
			assert.Contains(t, log.String(), "the chi middleware")
		})
	}
}

func TestLaterRequestsAreCheckedToo(t *testing.T) {
	var log bytes.Buffer
	router := chi.NewRouter()
	router.Use(penstockchi.Middleware(newEngine(t), nethttp.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}), middleware.StripSlashes)
	router.Get("/orders/{id}", ok)
	for range 100 {
		get(router, http.MethodGet, "/orders/7")
	}
	require.Empty(t, log.String())
	for range 16 {
		get(router, http.MethodGet, "/orders/7/")
	}
	assert.Equal(t, 1, strings.Count(log.String(), "level=WARN"), log.String())
}

func TestRequestThroughSeveralMiddlewaresIsOneCall(t *testing.T) {
	engine := newEngine(t)
	m := penstockchi.Middleware(engine, nethttp.Options{})
	handler := m(m(service(placed(m, "root agroup route routeGroup mount mountGroup"), ok)))
	assert.Equal(t, http.StatusOK, get(handler, http.MethodGet, "/v1/files/a/versions/3"))
	requireCalled(t, engine, "GET:/v1/files/{name}/versions/{version}")
	assert.EqualValues(t, 1, engine.Resource("GET:/v1/files/{name}/versions/{version}").Snapshot().Passed)
}

func TestOneMiddlewareServesManyRouters(t *testing.T) {
	engine := newEngine(t)
	m := penstockchi.Middleware(engine, nethttp.Options{})
	for i := range 300 {
		router := chi.NewRouter()
		router.Use(m)
		router.Get(fmt.Sprintf("/r%d/{id}", i), ok)
		get(router, http.MethodGet, fmt.Sprintf("/r%d/7", i))
		get(router, http.MethodGet, "/r0/7")
	}
	names := []string{nethttp.Unmatched}
	for i := range 300 {
		names = append(names, fmt.Sprintf("GET:/r%d/{id}", i))
	}
	requireCalled(t, engine, names...)
}

func TestRouteThatIsAddedLaterIsFound(t *testing.T) {
	engine := newEngine(t)
	router := chi.NewRouter()
	router.Use(penstockchi.Middleware(engine, nethttp.Options{}))
	router.Get("/a/{x}", ok)
	get(router, http.MethodGet, "/a/1")
	router.Route("/b", func(r chi.Router) { r.Get("/{y}", ok) })
	get(router, http.MethodGet, "/b/1")
	requireCalled(t, engine, "GET:/a/{x}", "GET:/b/{y}")
}

func TestRandomPathsAndMethodsNeverBecomeNames(t *testing.T) {
	engine := newEngine(t)
	handler := service(placed(penstockchi.Middleware(engine, nethttp.Options{}), "root routemount"), ok)
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		word := fmt.Sprintf("%x", random.Uint64())
		methods := []string{"GET", "HEAD", "POST", "PUT", "M" + word}
		shapes := []string{"/" + word, "/orders/" + word, "/any/" + word, "/tree/" + word, "/v1/files/" + word, "/v1/" + word, "/" + word + "/of/" + word}
		get(handler, methods[random.IntN(len(methods))], shapes[random.IntN(len(shapes))])
	}
	requireCalled(
		t, engine, nethttp.Unmatched, "GET:/orders/{id}", "GET:/tree/*", "GET:/v1/files/{name}", "GET:/{tenant}/of/*",
		"GET:/any/{x}", "HEAD:/any/{x}", "POST:/any/{x}", "PUT:/any/{x}",
	)
}

func TestRequestOutsideOfChiHasThePatternOfItsMux(t *testing.T) {
	engine := newEngine(t)
	mux := http.NewServeMux()
	mux.Handle("GET /orders/{id}", penstockchi.Middleware(engine, nethttp.Options{})(http.HandlerFunc(ok)))
	get(mux, http.MethodGet, "/orders/7")
	requireCalled(t, engine, orders)
}

func TestRulesOnRoutesLimitRequests(t *testing.T) {
	engine := newEngine(t, rateLimit(orders, 2))
	router := chi.NewRouter()
	router.Use(middleware.Recoverer, penstockchi.Middleware(engine, nethttp.Options{}))
	router.Get("/orders/{id}", func(_ http.ResponseWriter, r *http.Request) {
		if chi.URLParam(r, "id") == "1" {
			panic("boom")
		}
	})
	server := httptest.NewServer(router)
	defer server.Close()
	var statuses []int
	for id := range 4 {
		response, err := server.Client().Get(fmt.Sprintf("%s/orders/%d", server.URL, id))
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		statuses = append(statuses, response.StatusCode)
	}
	assert.Equal(t, []int{200, 500, 429, 429}, statuses)
	assert.EqualValues(t, 1, engine.Resource(orders).Snapshot().Failed)
}
