package serve

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	quota "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
)

const eventually = 5 * time.Minute // however busy the machine is

// quotaServer is a service over loopback on a virtual clock.
type quotaServer struct {
	t       testing.TB
	engine  *core.Engine
	now     *clock.Virtual
	service *RLQS
	client  quota.RateLimitQuotaServiceClient
	address string
}

func newQuotaServer(t testing.TB, options RLQSOptions, document string, of ...grpc.ServerOption) *quotaServer {
	t.Helper()
	s := &quotaServer{t: t, now: clock.NewVirtual(time.Unix(1_000_000, 0))}
	s.engine = core.New(core.Config{Clock: s.now, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(s.engine.Close)
	s.load(document)
	s.service = NewRLQS(s.engine, options)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(append(of, grpc.MaxRecvMsgSize(64<<20))...)
	quota.RegisterRateLimitQuotaServiceServer(server, s.service)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	s.address = listener.Addr().String()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	s.client = quota.NewRateLimitQuotaServiceClient(conn)
	t.Cleanup(func() {
		s.service.Close()
		require.NoError(t, conn.Close())
		server.Stop()
		require.NoError(t, <-served)
	})
	return s
}

func (s *quotaServer) load(document string) {
	s.t.Helper()
	set, err := rules.Parse("rules.yaml", []byte(document))
	require.NoError(s.t, err)
	require.NoError(s.t, s.engine.Load(set))
}

func (s *quotaServer) open() quota.RateLimitQuotaService_StreamRateLimitQuotasClient {
	s.t.Helper()
	stream, err := s.client.StreamRateLimitQuotas(s.t.Context())
	require.NoError(s.t, err)
	return stream
}

// counts waits until the server has as many streams, and buckets of streams.
func (s *quotaServer) counts(streams, shares int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		is := s.service.Status()
		return is.Streams == streams && is.Shares == shares
	}, eventually, time.Millisecond)
}

// divided lets time pass until the limits have been divided anew.
func (s *quotaServer) divided(d time.Duration) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.now.Timers() > 0 }, eventually, time.Millisecond)
	s.now.Advance(d)
}

// passTime lets time pass until what it returns is called.
func (s *quotaServer) passTime() (stop func()) {
	stopped, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stopped:
				return
			case <-time.After(time.Millisecond):
				s.now.Advance(divideInterval)
			}
		}
	}()
	return func() { close(stopped); <-ended }
}

// usage is a report of a bucket with these keys and values.
func usage(requests uint64, elapsed time.Duration, keysAndValues ...string) *quota.RateLimitQuotaUsageReports_BucketQuotaUsage {
	id := map[string]string{}
	for i := 0; i < len(keysAndValues); i += 2 {
		id[keysAndValues[i]] = keysAndValues[i+1]
	}
	return &quota.RateLimitQuotaUsageReports_BucketQuotaUsage{
		BucketId: &quota.BucketId{Bucket: id}, NumRequestsAllowed: requests, TimeElapsed: durationpb.New(elapsed),
	}
}

func report(domain string, usages ...*quota.RateLimitQuotaUsageReports_BucketQuotaUsage) *quota.RateLimitQuotaUsageReports {
	return &quota.RateLimitQuotaUsageReports{Domain: domain, BucketQuotaUsages: usages}
}

// actions receives messages until there are as many actions, and returns them by the value of "resource".
func actions(t testing.TB, from quota.RateLimitQuotaService_StreamRateLimitQuotasClient, count int) map[string]*quota.RateLimitQuotaResponse_BucketAction {
	t.Helper()
	got := map[string]*quota.RateLimitQuotaResponse_BucketAction{}
	for len(got) < count {
		message, err := from.Recv()
		require.NoError(t, err)
		for _, a := range message.GetBucketAction() {
			got[a.GetBucketId().GetBucket()["resource"]] = a
		}
	}
	return got
}

func TestBucketGetsTheLimitOfItsRules(t *testing.T) {
	s := newQuotaServer(t, RLQSOptions{}, `
flow:
  - {name: wide, resource: orders, limit: 9000}
  - {name: minute, resource: orders, limit: 120000, window: 1m, algorithm: tokenBucket}
  - {name: shadow, resource: orders, limit: 1, shadow: true}
  - {name: daily, resource: orders, limit: 1, window: 24h, algorithm: fixedWindow}
  - {resource: closed, limit: 0}
hotParam: [{resource: users, param: user, limit: 300, values: {root: 0}}]
`)
	stream := s.open()
	require.NoError(t, stream.Send(report("shop",
		usage(1, 0, "resource", "orders"), usage(1, 0, "resource", "closed"), usage(1, 0, "resource", "open"),
		usage(1, 0, "resource", "users", "user", "alice"))))
	s.counts(1, 4)
	s.divided(divideInterval)
	got := actions(t, stream, 4)
	strategy := func(resource string) *typev3.RateLimitStrategy {
		return got[resource].GetQuotaAssignmentAction().GetRateLimitStrategy()
	}
	for resource, rate := range map[string]uint32{"orders": 2000, "users": 300} {
		bucket := strategy(resource).GetTokenBucket()
		assert.Equal(t, rate, bucket.GetTokensPerFill().GetValue(), resource)
		assert.Equal(t, time.Second, bucket.GetFillInterval().AsDuration(), resource)
		assert.Positive(t, bucket.GetMaxTokens(), resource)
		assert.Equal(t, DefaultTTL, got[resource].GetQuotaAssignmentAction().GetAssignmentTimeToLive().AsDuration(), resource)
	}
	assert.Equal(t, map[string]string{"resource": "users", "user": "alice"}, got["users"].GetBucketId().GetBucket())
	assert.IsType(t, &typev3.RateLimitStrategy_BlanketRule_{}, strategy("closed").GetStrategy())
	assert.Equal(t, typev3.RateLimitStrategy_DENY_ALL, strategy("closed").GetBlanketRule())
	assert.Equal(t, typev3.RateLimitStrategy_ALLOW_ALL, strategy("open").GetBlanketRule())
	assert.IsType(t, &typev3.RateLimitStrategy_BlanketRule_{}, strategy("open").GetStrategy())
	assert.Equal(t, time.Minute, got["open"].GetQuotaAssignmentAction().GetAssignmentTimeToLive().AsDuration())

	s.load("flow: [{resource: orders, limit: 500}]")
	require.NoError(t, stream.Send(report("", usage(5000, 5*time.Second, "resource", "orders"))))
	defer s.passTime()()
	assert.EqualValues(t, 500, actions(t, stream, 1)["orders"].GetQuotaAssignmentAction().GetRateLimitStrategy().
		GetTokenBucket().GetTokensPerFill().GetValue())
}

func TestIdleBucketIsAbandoned(t *testing.T) {
	s := newQuotaServer(t, RLQSOptions{}, "flow: [{resource: orders, limit: 10}]")
	stream := s.open()
	require.NoError(t, stream.Send(report("shop", usage(1, 0, "resource", "orders"))))
	for range idleReports {
		require.NoError(t, stream.Send(report("", usage(0, 5*time.Second, "resource", "orders"))))
	}
	assert.NotNil(t, actions(t, stream, 1)["orders"].GetAbandonAction())
	s.counts(1, 0)
	require.NoError(t, stream.Send(report("", usage(1, 0, "resource", "orders"))))
	s.counts(1, 1)
}

func TestClosedServiceEndsItsStreams(t *testing.T) {
	s := newQuotaServer(t, RLQSOptions{}, "flow: [{resource: orders, limit: 10}]")
	stream := s.open()
	require.NoError(t, stream.Send(report("shop", usage(1, 0, "resource", "orders"))))
	s.counts(1, 1)
	s.service.Close()
	_, err := stream.Recv()
	assert.Equal(t, codes.Unavailable, status.Code(err))
	_, err = s.open().Recv()
	assert.Equal(t, codes.Unavailable, status.Code(err))
	s.counts(0, 0)
}

func TestUnservableStreamsEndWithAnError(t *testing.T) {
	s := newQuotaServer(t, RLQSOptions{MaxStreams: 1}, "serve: {domain: shop}")
	for name, test := range map[string]struct {
		messages []*quota.RateLimitQuotaUsageReports
		code     codes.Code
	}{
		"no domain":      {[]*quota.RateLimitQuotaUsageReports{report("")}, codes.InvalidArgument},
		"a long domain":  {[]*quota.RateLimitQuotaUsageReports{report(strings.Repeat("x", 10_000))}, codes.InvalidArgument},
		"another domain": {[]*quota.RateLimitQuotaUsageReports{report("mail")}, codes.NotFound},
		"two domains":    {[]*quota.RateLimitQuotaUsageReports{report("shop"), report("mail")}, codes.InvalidArgument},
	} {
		s.counts(0, 0)
		stream := s.open()
		for _, message := range test.messages {
			require.NoError(t, stream.Send(message), name)
		}
		_, err := stream.Recv()
		assert.Equal(t, test.code, status.Code(err), name)
	}
	s.counts(0, 0)
	s.open() // which reports nothing, and counts
	s.counts(1, 0)
	_, err := s.open().Recv()
	assert.Equal(t, codes.ResourceExhausted, status.Code(err))
}

func TestHostileReportsCostBoundedMemory(t *testing.T) {
	options := RLQSOptions{MaxBuckets: 20, MaxStreamBuckets: 8, MaxShares: 30, MaxBucketSize: 100}
	s := newQuotaServer(t, options, "flow: [{match: '*', perResource: true, limit: 1000000000}]")
	random := rand.New(rand.NewPCG(1, 1))
	numbers := []uint64{0, 1, 100, math.MaxInt64, math.MaxUint64}
	times := []*durationpb.Duration{nil, {}, {Seconds: -5}, {Seconds: math.MaxInt64}, {Nanos: math.MaxInt32}, {Seconds: 1}, {Seconds: 5}}
	texts := []string{"", "a", strings.Repeat("x", 99), strings.Repeat("y", 10_000)}
	var streams []quota.RateLimitQuotaService_StreamRateLimitQuotasClient
	for range 6 {
		streams = append(streams, s.open())
	}
	for i := range 300 {
		message := report("shop", nil...)
		for range random.IntN(20) {
			u := &quota.RateLimitQuotaUsageReports_BucketQuotaUsage{
				NumRequestsAllowed: numbers[random.IntN(len(numbers))], NumRequestsDenied: numbers[random.IntN(len(numbers))],
				TimeElapsed: times[random.IntN(len(times))],
			}
			if random.IntN(10) > 0 {
				u.BucketId = &quota.BucketId{Bucket: map[string]string{}}
				u.BucketId.Bucket["resource"] = strconv.Itoa(random.IntN(50))
				for range random.IntN(40) * random.IntN(2) {
					u.BucketId.Bucket[strconv.Itoa(random.IntN(4))+texts[random.IntN(len(texts))]] = texts[random.IntN(len(texts))]
				}
			}
			message.BucketQuotaUsages = append(message.BucketQuotaUsages, u)
		}
		require.NoError(t, streams[i%len(streams)].Send(message))
		if i%10 == 0 {
			s.now.Advance(divideInterval)
		}
	}
	require.Eventually(t, func() bool {
		is := s.service.Status()
		return is.Streams == len(streams) && is.Buckets == options.MaxBuckets && is.Unassigned > 1000
	}, eventually, time.Millisecond)
	q := s.service.quotas
	q.mu.Lock()
	defer q.mu.Unlock()
	assert.LessOrEqual(t, len(q.buckets), options.MaxBuckets)
	assert.LessOrEqual(t, q.shares, options.MaxShares)
	shares := 0
	for _, b := range q.buckets {
		shares += len(b.shares)
		for _, share := range b.shares {
			assert.LessOrEqual(t, len(share.stream.shares), options.MaxStreamBuckets)
			assert.LessOrEqual(t, len(share.stream.queue)+len(share.stream.gone), 2*options.MaxStreamBuckets)
			assert.False(t, math.IsNaN(share.part) || math.IsNaN(share.demand))
		}
	}
	assert.Equal(t, shares, q.shares)
}

func TestStreamThatEndsIsCleanOnlyIfItsDataPlaneSaysSo(t *testing.T) {
	s := newQuotaServer(t, RLQSOptions{}, "flow: [{resource: orders, limit: 1000}]")
	ctx, cancel := context.WithCancel(t.Context())
	lost, err := s.client.StreamRateLimitQuotas(ctx)
	require.NoError(t, err)
	clean := s.open()
	for _, stream := range []quota.RateLimitQuotaService_StreamRateLimitQuotasClient{lost, clean} {
		require.NoError(t, stream.Send(report("shop", usage(1, 0, "resource", "orders"))))
	}
	s.counts(2, 2)
	s.divided(divideInterval)
	actions(t, clean, 1)
	require.NoError(t, clean.CloseSend())
	s.counts(1, 1)
	cancel()
	s.counts(0, 1)
	s.counts(0, 1)
	s.now.Advance(DefaultTTL)
	require.Eventually(t, func() bool {
		s.now.Advance(divideInterval)
		return s.service.Status() == RLQSStatus{}
	}, eventually, time.Millisecond)
}
