package serve

import (
	"fmt"
	"os"
	"os/exec"
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
		streams = append(streams, newQuotaStream("shop", fmt.Sprint(i), make(chan struct{}, 1)))
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

// BenchmarkIdleQuotaStreams is the memory that 10,000 streams take of a server that report nothing,
// over as many connections as are named. Their clients are a process of their own.
func BenchmarkIdleQuotaStreams(b *testing.B) {
	for _, connections := range []int{20, 1000, 10_000} {
		b.Run(fmt.Sprint(connections), func(b *testing.B) {
			s := newQuotaServer(b, RLQSOptions{}, "flow: [{resource: orders, limit: 1000}]")
			before := memoryInUse()
			clients := exec.CommandContext(b.Context(), os.Args[0], "-test.run", "^TestOpenIdleQuotaStreams$")
			clients.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", idleStreamsTo, s.address, connections))
			require.NoError(b, clients.Start())
			defer func() {
				_ = clients.Process.Kill()
				_ = clients.Wait()
			}()
			s.counts(idleStreams, idleStreams)
			for b.Loop() {
			}
			b.ReportMetric(float64(memoryInUse()-before)/(1<<20), "MiB")
		})
	}
}

// idleStreams is how many streams [BenchmarkIdleQuotaStreams] opens.
const idleStreams = 10_000

// idleStreamsTo is the environment variable that tells [TestOpenIdleQuotaStreams] an address and a number of connections.
const idleStreamsTo = "PENSTOCK_BENCH_IDLE_STREAMS"

// TestOpenIdleQuotaStreams is the clients of [BenchmarkIdleQuotaStreams]. It stays until it is killed.
func TestOpenIdleQuotaStreams(t *testing.T) {
	var address string
	var connections int
	if _, err := fmt.Sscan(os.Getenv(idleStreamsTo), &address, &connections); err != nil {
		t.Skip(idleStreamsTo + " names no server")
	}
	for i := range connections {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		for j := range idleStreams / connections {
			stream, err := quota.NewRateLimitQuotaServiceClient(conn).StreamRateLimitQuotas(t.Context())
			require.NoError(t, err)
			require.NoError(t, stream.Send(report("shop", usage(1, 0, "resource", "orders", "stream", fmt.Sprint(i, j)))))
		}
	}
	<-t.Context().Done()
}

// memoryInUse returns the bytes of this process's heap and stacks, without what can be freed.
func memoryInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
