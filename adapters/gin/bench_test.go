package penstockgin_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
)

// BenchmarkMiddleware shows what the middleware adds to a call, beside the same
// without it.
func BenchmarkMiddleware(b *testing.B) {
	guard := func(limit float64, options penstockgin.Options) gin.HandlerFunc {
		engine, _ := newEngine(b, core.Config{}, rateLimit("reads", orders, limit))
		return penstockgin.Middleware(engine, options)
	}
	for _, bench := range []struct {
		name     string
		handlers []gin.HandlerFunc
	}{
		{"unguarded", nil},
		{"passed", []gin.HandlerFunc{guard(1e9, penstockgin.Options{})}},
		{"passed with fields", []gin.HandlerFunc{guard(1e9, penstockgin.Options{Fields: nethttp.Fields{Always: true}})}},
		{"refused", []gin.HandlerFunc{guard(0, penstockgin.Options{})}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			router := gin.New()
			router.Use(bench.handlers...)
			router.GET("/orders/:id", func(*gin.Context) {})
			request := httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody)
			writer := adaptertest.NewDiscardWriter()
			b.ReportAllocs()
			for b.Loop() {
				router.ServeHTTP(writer, request)
			}
		})
	}
}

// BenchmarkAttributes shows what it costs that a rule looks at an attribute, beside a
// rule that looks at one which calls do not have.
func BenchmarkAttributes(b *testing.B) {
	for name, key := range map[string]string{"none": "user", "ip": "ip", "header": "header:x-tenant", "param": "param:id"} {
		b.Run(name, func(b *testing.B) {
			p := &adaptertest.AttributeReader{Key: key}
			router := gin.New()
			router.Use(penstockgin.Middleware(p.NewEngine(b), penstockgin.Options{}))
			router.GET("/orders/:id", func(*gin.Context) {})
			request := httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody)
			request.Header.Set("X-Tenant", "a")
			writer := adaptertest.NewDiscardWriter()
			b.ReportAllocs()
			for b.Loop() {
				router.ServeHTTP(writer, request)
			}
		})
	}
}
