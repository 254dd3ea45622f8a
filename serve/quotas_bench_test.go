package serve

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	quota "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/penstock-go/penstock/clock"
)

// BenchmarkQuotaReports is a second of 50 data planes that report 10,000 buckets each every five
// seconds: what of a core it takes is the time of an operation in seconds.
func BenchmarkQuotaReports(b *testing.B) {
	const planes, buckets = 50, 10_000
	s := newQuotaServer(b, RLQSOptions{}, "hotParam: [{resource: orders, param: user, limit: 1000}]")
	q := s.service.quotas
	message := &quota.RateLimitQuotaUsageReports{}
	for i := range buckets {
		message.BucketQuotaUsages = append(message.BucketQuotaUsages, usage(100, 5*time.Second, "resource", "orders", "user", fmt.Sprint(i)))
	}
	wire, err := proto.Marshal(message)
	require.NoError(b, err)
	var streams []*quotaStream
	for i := range planes {
		stream, err := q.open("shop", fmt.Sprint(i))
		require.NoError(b, err)
		streams = append(streams, stream)
	}
	now := clock.Instant(1000 * time.Second)
	actions := 0
	second := func(from int) {
		for step := range 5 {
			for i := range 2 {
				stream := streams[(from*10+2*step+i)%planes]
				var read quota.RateLimitQuotaUsageReports
				require.NoError(b, proto.Unmarshal(wire, &read))
				usages := make([]quotaUsage, 0, buckets)
				for _, u := range read.GetBucketQuotaUsages() {
					usages = append(usages, quotaUsage{u.GetBucketId().GetBucket(), float64(u.GetNumRequestsAllowed()), 5 * time.Second})
				}
				q.report(stream, now, usages, 0)
			}
			now = now.Add(divideInterval)
			q.step(now)
			for _, stream := range streams {
				for taken := q.take(stream, nil); len(taken) > 0; taken = q.take(stream, nil) {
					actions += len(taken)
				}
			}
		}
	}
	for i := range 10 { // until all have assignments
		second(i)
	}
	actions = 0
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		second(i)
	}
	b.ReportMetric(float64(actions)/float64(b.N), "actions/op")
	b.ReportMetric(float64(len(wire)), "B/report")
}

// BenchmarkIdleQuotaStreams is what 10,000 streams take that report nothing, over as many
// connections as are named. Half of it is that of the clients in this process, or more.
func BenchmarkIdleQuotaStreams(b *testing.B) {
	for _, connections := range []int{20, 1000} {
		b.Run(fmt.Sprint(connections), func(b *testing.B) {
			const streams = 10_000
			s := newQuotaServer(b, RLQSOptions{}, "flow: [{resource: orders, limit: 1000}]")
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			for i := range connections {
				conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
				require.NoError(b, err)
				defer conn.Close()
				for j := range streams / connections {
					stream, err := quota.NewRateLimitQuotaServiceClient(conn).StreamRateLimitQuotas(ctx)
					require.NoError(b, err)
					require.NoError(b, stream.Send(report("shop", usage(1, 0, "resource", "orders", "stream", fmt.Sprint(i, j)))))
				}
			}
			s.counts(streams, streams)
			runtime.GC()
			runtime.ReadMemStats(&after)
			for b.Loop() {
			}
			b.ReportMetric(float64(after.HeapInuse+after.StackInuse-before.HeapInuse-before.StackInuse)/(1<<20), "MiB")
		})
	}
}
