package nethttp_test

import (
	"io"
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
		engine, _ := newEngine(b, core.Config{}, rateLimit("reads", orders, 1e9))
		return nethttp.Middleware(engine, options)(next)
	}
	closed, _ := newEngine(b, core.Config{}, rateLimit("reads", orders, 0))
	for _, bench := range []struct {
		name    string
		handler http.Handler
	}{
		{"handler/unguarded", nothing},
		{"handler/passed", open(nethttp.Options{}, nothing)},
		{"handler/passed with fields", open(nethttp.Options{Fields: nethttp.FieldsAlways}, nothing)},
		{"handler/refused", nethttp.Middleware(closed, nethttp.Options{})(nothing)},
		{"handler/the same answer", http.HandlerFunc(sameAnswer)},
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

// sameAnswer writes what a refused call is answered with.
func sameAnswer(w http.ResponseWriter, _ *http.Request) {
	header := w.Header()
	header.Set("RateLimit", `"reads";r=0`)
	header.Set("RateLimit-Policy", `"reads";q=0;w=1`)
	header.Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = io.WriteString(w, `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",`+
		`"title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,`+
		`"detail":"The call of \"GET:/orders/{id}\" was refused by flow \"reads\".","violated-policies":["reads"]}`)
}
