package serve_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/serve"
)

// A program registers the service with a gRPC server, by
// ratelimitv3.RegisterRateLimitServiceServer; the example asks it directly.
func ExampleNewRLS() {
	engine := core.New(core.Config{Clock: clock.NewVirtual(time.Unix(0, 0)), Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	if err := engine.Load(rules.Set{Flow: []flow.Rule{{Name: "two-a-second", Resource: "orders", Limit: 2}}}); err != nil {
		panic(err)
	}
	service := serve.NewRLS(engine, serve.RLSOptions{})
	for range 3 {
		answer, err := service.ShouldRateLimit(context.Background(), &rls.RateLimitRequest{
			Domain: "shop",
			Descriptors: []*ratelimit.RateLimitDescriptor{{
				Entries: []*ratelimit.RateLimitDescriptor_Entry{{Key: "generic_key", Value: "orders"}},
			}},
		})
		if err != nil {
			panic(err)
		}
		fmt.Println(answer.GetOverallCode(), answer.GetStatuses()[0].GetLimitRemaining())
	}
	// Output:
	// OK 1
	// OK 0
	// OVER_LIMIT 0
}
