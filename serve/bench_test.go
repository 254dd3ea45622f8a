package serve_test

import (
	"context"
	"testing"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/serve"
)

// trivial is a server that decides nothing: what gRPC costs.
type trivial struct {
	rls.UnimplementedRateLimitServiceServer
}

func (trivial) ShouldRateLimit(context.Context, *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	return &rls.RateLimitResponse{OverallCode: rls.RateLimitResponse_OK}, nil
}

// BenchmarkRLS measures requests over loopback, beside those to a server that decides nothing.
func BenchmarkRLS(b *testing.B) {
	engine, _ := newEngine(b, `
flow: [{resource: open, limit: 1000000000}, {resource: closed, limit: 0}]
hotParam: [{resource: user, param: user, limit: 1000000000}]
`)
	service := dialRLS(b, engine, serve.RLSOptions{})
	nothing := rls.NewRateLimitServiceClient(dial(b, func(s *grpc.Server) { rls.RegisterRateLimitServiceServer(s, trivial{}) }))
	for _, to := range []struct {
		name   string
		client rls.RateLimitServiceClient
		d      []string
	}{
		{"trivial", nothing, []string{"generic_key", "open"}},
		{"passed", service, []string{"generic_key", "open"}},
		{"refused", service, []string{"generic_key", "closed"}},
		{"user", service, []string{"generic_key", "user", "user", "alice"}},
	} {
		request := &rls.RateLimitRequest{Domain: "shop", Descriptors: descriptors(entries(to.d...))}
		b.Run(to.name, func(b *testing.B) {
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := to.client.ShouldRateLimit(b.Context(), request); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
	direct := serve.NewRLS(engine, serve.RLSOptions{})
	request := &rls.RateLimitRequest{Domain: "shop", Descriptors: descriptors(entries("generic_key", "open"))}
	b.Run("without gRPC", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = direct.ShouldRateLimit(b.Context(), request)
		}
	})
}
