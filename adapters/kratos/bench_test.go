package penstockkratos_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-kratos/kratos/v2/middleware"
	khttp "github.com/go-kratos/kratos/v2/transport/http"

	penstockkratos "github.com/penstock-go/penstock/adapters/kratos"
	"github.com/penstock-go/penstock/flow"
)

// BenchmarkServer measures a request over HTTP, without a network, beside that of bare kratos.
func BenchmarkServer(b *testing.B) {
	engine := newEngine(b, flow.Rule{Resource: check, Limit: 1e9})
	closed := newEngine(b, flow.Rule{Resource: check, Limit: 0})
	for _, row := range []struct {
		name string
		with []middleware.Middleware
	}{
		{"bare", nil},
		{"no rule", []middleware.Middleware{penstockkratos.Server(newEngine(b), penstockkratos.Options{})}},
		{"passed", []middleware.Middleware{penstockkratos.Server(engine, penstockkratos.Options{})}},
		{"refused", []middleware.Middleware{penstockkratos.Server(closed, penstockkratos.Options{})}},
	} {
		b.Run(row.name, func(b *testing.B) {
			server := khttp.NewServer(khttp.Middleware(row.with...))
			server.Route("/").POST("/health", service{finish: succeed}.handle)
			body := []byte("{}")
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/health", bytes.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				server.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}

// BenchmarkMiddleware measures what the guard adds to a call, without a transport.
func BenchmarkMiddleware(b *testing.B) {
	engine := newEngine(b, flow.Rule{Resource: penstockkratos.Unmatched, Limit: 1e9})
	closed := newEngine(b, flow.Rule{Resource: penstockkratos.Unmatched, Limit: 0})
	next := func(context.Context, any) (any, error) { return nil, nil } //nolint:nilnil // of a handler that does nothing
	for name, with := range map[string]middleware.Middleware{
		"server, passed":  penstockkratos.Server(engine, penstockkratos.Options{}),
		"server, refused": penstockkratos.Server(closed, penstockkratos.Options{}),
		"client, passed":  penstockkratos.Client(engine, penstockkratos.Options{}),
		"client, refused": penstockkratos.Client(closed, penstockkratos.Options{}),
	} {
		b.Run(name, func(b *testing.B) {
			handler := with(next)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = handler(b.Context(), nil)
			}
		})
	}
}
