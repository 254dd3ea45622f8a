package penstockchi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockchi "github.com/penstock-go/penstock/adapters/chi"
	"github.com/penstock-go/penstock/adapters/nethttp"
)

// BenchmarkMiddleware shows what the middleware adds to a call, beside chi without it.
func BenchmarkMiddleware(b *testing.B) {
	guard := func(limit float64) use {
		return penstockchi.Middleware(newEngine(b, rateLimit(orders, limit)), nethttp.Options{})
	}
	for _, bench := range []struct {
		name       string
		middleware use
		group      bool
	}{
		{"unguarded", none, false},
		{"passed in Use", guard(1e9), false},
		{"passed in Group", guard(1e9), true},
		{"refused in Use", guard(0), false},
	} {
		b.Run(bench.name, func(b *testing.B) {
			router := chi.NewRouter()
			if !bench.group {
				router.Use(bench.middleware)
			}
			router.Group(func(r chi.Router) {
				if bench.group {
					r.Use(bench.middleware)
				}
				r.Get("/orders/{id}", func(http.ResponseWriter, *http.Request) {})
			})
			request := httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody)
			writer := adaptertest.NewDiscardWriter()
			b.ReportAllocs()
			for b.Loop() {
				router.ServeHTTP(writer, request)
			}
		})
	}
}
