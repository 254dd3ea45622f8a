package nethttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/clientip"
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
		{"handler/passed with fields", open(nethttp.Options{Fields: nethttp.Fields{Always: true}}, nothing)},
		{"handler/refused", nethttp.Middleware(closed, nethttp.Options{})(nothing)},
		{"handler/the same answer", http.HandlerFunc(sameAnswer)},
		{"mux/unguarded", mux},
		{"mux/passed", open(nethttp.Options{}, mux)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			request := httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody)
			request.Pattern = pattern
			writer := adaptertest.NewDiscardWriter()
			b.ReportAllocs()
			for b.Loop() {
				bench.handler.ServeHTTP(writer, request)
			}
		})
	}
}

// BenchmarkAttributes shows what it costs that a rule looks at an attribute, beside a
// rule that looks at one which calls do not have.
func BenchmarkAttributes(b *testing.B) {
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	mux := http.NewServeMux()
	mux.Handle("GET /orders/{id}", nothing)
	request := httptest.NewRequest(http.MethodGet, "/orders/7?tenant=a", http.NoBody)
	request.Header = http.Header{
		"X-Tenant": {"a"}, "Cookie": {"theme=dark; sid=1"}, "X-Forwarded-For": {"198.51.100.7, 192.0.2.7"},
	}
	ipv6 := request.Clone(b.Context())
	ipv6.RemoteAddr = "[2001:db8:1:2:3:4:5:6]:80"
	trusting := nethttp.Options{Clients: clientip.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}}
	for _, bench := range []struct {
		name, key string
		options   nethttp.Options
		next      http.Handler
		request   *http.Request
	}{
		{"none", "user", nethttp.Options{}, nothing, request},
		{"ip", "ip", nethttp.Options{}, nothing, request},
		{"ip of IPv6", "ip", nethttp.Options{}, nothing, ipv6},
		{"ipPrefix of IPv6", "ipPrefix", nethttp.Options{}, nothing, ipv6},
		{"ip behind two proxies", "ip", trusting, nothing, request},
		{"host", "host", nethttp.Options{}, nothing, request},
		{"header", "header:x-tenant", nethttp.Options{}, nothing, request},
		{"cookie", "cookie:sid", nethttp.Options{}, nothing, request},
		{"query", "query:tenant", nethttp.Options{}, nothing, request},
		{"none, mux", "user", nethttp.Options{}, mux, request},
		{"param, mux", "param:id", nethttp.Options{}, mux, request},
	} {
		b.Run(bench.name, func(b *testing.B) {
			p := &adaptertest.AttributeReader{Key: bench.key}
			bench.options.Logger = discardLogger()
			handler := nethttp.Middleware(p.NewEngine(b), bench.options)(bench.next)
			writer := adaptertest.NewDiscardWriter()
			b.ReportAllocs()
			for b.Loop() {
				handler.ServeHTTP(writer, bench.request)
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
