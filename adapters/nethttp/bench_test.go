package nethttp_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
)

// BenchmarkMiddleware shows what the middleware adds to a call, beside the same
// without it.
func BenchmarkMiddleware(b *testing.B) {
	const pattern = "GET /orders/{id}"
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	mux := http.NewServeMux()
	mux.Handle(pattern, nothing)
	open := func(options nethttp.Options, next http.Handler) http.Handler {
		engine, _ := newEngine(b, core.Config{}, ceiling("reads", orders, 1e9))
		return nethttp.Middleware(engine, options)(next)
	}
	closed, _ := newEngine(b, core.Config{}, ceiling("reads", orders, 0))
	for _, bench := range []struct {
		name    string
		handler http.Handler
	}{
		{"handler/unguarded", nothing},
		{"handler/passed", open(nethttp.Options{}, nothing)},
		{"handler/passed with fields", open(nethttp.Options{Fields: nethttp.FieldsAlways}, nothing)},
		{"handler/refused", nethttp.Middleware(closed, nethttp.Options{})(nothing)},
		{"mux/unguarded", mux},
		{"mux/passed", open(nethttp.Options{}, mux)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			request := httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody)
			request.Pattern = pattern
			writer := &discardWriter{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				bench.handler.ServeHTTP(writer, request)
			}
		})
	}
}
