package serve_test

import (
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// BenchmarkServers measures rate limit services that run already, in processes of their own, such
// as that of envoyproxy/ratelimit: PENSTOCK_BENCH_SERVERS names them, as in
// "penstock=127.0.0.1:8081,reference=127.0.0.1:9081". 64 callers on four connections ask about the
// generic key "open" of the domain "shop", as fast as they get answers, and 10,000 times a second.
func BenchmarkServers(b *testing.B) {
	servers := os.Getenv("PENSTOCK_BENCH_SERVERS")
	if servers == "" {
		b.Skip("PENSTOCK_BENCH_SERVERS names no servers")
	}
	for server := range strings.SplitSeq(servers, ",") {
		name, address, _ := strings.Cut(server, "=")
		var clients []rls.RateLimitServiceClient
		for range 4 {
			conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
			require.NoError(b, err)
			b.Cleanup(func() { _ = conn.Close() })
			clients = append(clients, rls.NewRateLimitServiceClient(conn))
		}
		b.Run(name+"/unpaced", func(b *testing.B) { askServer(b, clients, 0) })
		b.Run(name+"/paced", func(b *testing.B) { askServer(b, clients, 10_000) })
	}
}

// askServer has 64 callers ask b.N times by clients, together so often a second; 0 is as fast as they get answers.
func askServer(b *testing.B, clients []rls.RateLimitServiceClient, rate int) {
	b.Helper()
	request := &rls.RateLimitRequest{Domain: "shop", Descriptors: descriptors(entries("generic_key", "open"))}
	took := make([]time.Duration, b.N)
	var next atomic.Int64
	var group sync.WaitGroup
	start := time.Now()
	for i := range 64 {
		group.Go(func() {
			for at := next.Add(1) - 1; at < int64(b.N); at = next.Add(1) - 1 {
				if rate > 0 {
					time.Sleep(time.Until(start.Add(time.Duration(at) * time.Second / time.Duration(rate))))
				}
				begin := time.Now()
				answer, err := clients[i%len(clients)].ShouldRateLimit(b.Context(), request)
				if err != nil || answer.GetOverallCode() != rls.RateLimitResponse_OK {
					b.Error(answer, err)
					return
				}
				took[at] = time.Since(begin)
			}
		})
	}
	group.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	b.ReportMetric(float64(took[b.N/2])/1e6, "p50-ms")
	b.ReportMetric(float64(took[b.N*99/100])/1e6, "p99-ms")
}

// TestServeTrivially serves until it is killed, at the address PENSTOCK_BENCH_TRIVIAL, and decides
// nothing: what gRPC costs, for [BenchmarkServers].
func TestServeTrivially(t *testing.T) {
	address := os.Getenv("PENSTOCK_BENCH_TRIVIAL")
	if address == "" {
		t.Skip("PENSTOCK_BENCH_TRIVIAL names no address")
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	require.NoError(t, err)
	server := grpc.NewServer()
	rls.RegisterRateLimitServiceServer(server, trivial{})
	require.NoError(t, server.Serve(listener))
}
