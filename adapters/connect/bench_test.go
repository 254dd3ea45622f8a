package penstockconnect_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	penstockconnect "github.com/penstock-go/penstock/adapters/connect"
	"github.com/penstock-go/penstock/flow"
)

// BenchmarkServer measures a unary call of the Connect protocol, without a network, beside that
// of bare Connect.
func BenchmarkServer(b *testing.B) {
	guard := func(limits ...flow.Rule) []connect.HandlerOption {
		interceptor := penstockconnect.ServerInterceptor(newEngine(b, limits...), penstockconnect.Options{})
		return []connect.HandlerOption{connect.WithInterceptors(interceptor)}
	}
	for _, row := range []struct {
		name string
		opts []connect.HandlerOption
	}{
		{"bare", nil},
		{"no rule", guard()},
		{"passed", guard(flow.Rule{Resource: create, Limit: 1e9})},
		{"refused", guard(flow.Rule{Resource: create, Limit: 0})},
	} {
		b.Run(row.name, func(b *testing.B) {
			handler := newHandler(succeed, row.opts...)
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, create, strings.NewReader(`"a"`))
				r.Header.Set("Content-Type", "application/json")
				handler.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}

// BenchmarkInterceptor measures what the guard adds to a unary call.
func BenchmarkInterceptor(b *testing.B) {
	request := connect.NewRequest(wrapperspb.String("a")) // of no procedure
	resource := func(context.Context, *penstockconnect.Call) string { return "r" }
	next := func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) { return nil, nil } //nolint:nilnil // does nothing
	for name, limit := range map[string]float64{"passed": 1e9, "refused": 0} {
		b.Run(name, func(b *testing.B) {
			engine := newEngine(b, flow.Rule{Resource: "r", Limit: limit})
			call := penstockconnect.ServerInterceptor(engine, penstockconnect.Options{Resource: resource}).WrapUnary(next)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = call(b.Context(), request)
			}
		})
	}
}
