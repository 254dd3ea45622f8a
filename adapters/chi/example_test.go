package penstockchi_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	penstockchi "github.com/penstock-go/penstock/adapters/chi"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// exampleEngine lets two calls of a resource a second pass. Its clock stands
// still, as the output of an example must not depend on time.
func exampleEngine(resource string) *core.Engine {
	engine := core.New(core.Config{
		Clock:  clock.NewVirtual(time.Unix(0, 0)),
		Logger: slog.New(slog.DiscardHandler),
	})
	err := engine.Load(rules.Set{Flow: []flow.Rule{{Name: "two-a-second", Resource: resource, Limit: 2}}})
	if err != nil {
		panic(err)
	}
	return engine
}

func ExampleMiddleware() {
	router := chi.NewRouter()
	router.Use(middleware.Recoverer, penstockchi.Middleware(exampleEngine("GET:/v1/orders/{id}"), nethttp.Options{}))
	router.Route("/v1", func(r chi.Router) {
		r.Get("/orders/{id}", func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, "order %s", chi.URLParam(r, "id"))
		})
	})

	for id := range 3 {
		recorder := httptest.NewRecorder()
		router.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, fmt.Sprintf("/v1/orders/%d", id), http.NoBody))
		fmt.Printf("%d %q\n", recorder.Code, recorder.Header().Get("RateLimit"))
	}
	// Output:
	// 200 ""
	// 200 ""
	// 429 "\"p-dae92c4f8974\";r=0;t=1"
}

// Health checks stay unguarded, everything else is named by its route.
func ExampleRouteResource() {
	route := penstockchi.RouteResource()
	router := chi.NewRouter()
	router.Use(penstockchi.Middleware(exampleEngine("GET:/orders/{id}"), nethttp.Options{
		Resource: func(r *http.Request) string {
			if r.URL.Path == "/healthz" {
				return ""
			}
			return route(r)
		},
	}))
	router.Get("/healthz", func(http.ResponseWriter, *http.Request) {})
	router.Get("/orders/{id}", func(http.ResponseWriter, *http.Request) {})

	for _, path := range []string{"/orders/1", "/orders/2", "/orders/3", "/healthz"} {
		recorder := httptest.NewRecorder()
		router.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		fmt.Println(recorder.Code)
	}
	// Output:
	// 200
	// 200
	// 429
	// 200
}
