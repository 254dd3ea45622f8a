package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/serve"
)

const rlsDocument = `
flow: [{name: all, resource: orders, limit: 10, window: 1m}]
hotParam: [{name: per-user, resource: user, param: user, limit: 3, window: 1m}]
`

// showRequests asks the rate limit service as Envoy does. One user has a limit of three, and a
// request that is refused takes nothing of its other limits.
func showRequests(ctx context.Context, out io.Writer) error {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	set, err := rules.Parse("orders.yaml", []byte(rlsDocument))
	if err != nil {
		return err
	}
	if err := engine.Load(set); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	rls.RegisterRateLimitServiceServer(server, serve.NewRLS(engine, serve.RLSOptions{}))
	go func() { _ = server.Serve(listener) }()
	defer server.GracefulStop()

	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	client := rls.NewRateLimitServiceClient(conn)
	for _, user := range []string{"alice", "alice", "alice", "alice", "bob"} {
		answer, err := client.ShouldRateLimit(ctx, &rls.RateLimitRequest{
			Domain:      "shop",
			Descriptors: []*ratelimit.RateLimitDescriptor{descriptor("generic_key", "orders"), descriptor("generic_key", "user", "user", user)},
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-6s %-10s left for all: %d, for the user: %d\n", user, answer.GetOverallCode(),
			answer.GetStatuses()[0].GetLimitRemaining(), answer.GetStatuses()[1].GetLimitRemaining())
	}
	return nil
}

// descriptor returns a descriptor of keys and values in turn.
func descriptor(keysAndValues ...string) *ratelimit.RateLimitDescriptor {
	d := &ratelimit.RateLimitDescriptor{}
	for pair := range slices.Chunk(keysAndValues, 2) {
		d.Entries = append(d.Entries, &ratelimit.RateLimitDescriptor_Entry{Key: pair[0], Value: pair[1]})
	}
	return d
}
