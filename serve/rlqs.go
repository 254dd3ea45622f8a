package serve

import (
	"context"
	"log/slog"
	"math"
	"net"
	"sync"
	"time"

	quota "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// RLQS is the rate limit quota service of Envoy,
// envoy.service.rate_limit_quota.v3.RateLimitQuotaService. Make it with [NewRLQS], and close it.
// It is safe for concurrent use.
//
// Data planes decide on requests by themselves, by quotas that they get for buckets, and report
// how many there were. A bucket is what a descriptor of [RLS] is: its entries name the resource and
// are the attributes. Its limit is the least rate of the flow and hotParam rules that such a call
// has to pass; rules that are no rate, see [CheckQuotas], do not count. RLQS divides it among the
// data planes by their demand: those that demand less than an even part have it, with
// headroom, and the others the same part each of what is left. Each has a token bucket, that
// lasts for some time and is renewed before. A limit of 0 denies all requests; a bucket without a rule
// allows all.
//
// What was assigned goes on while a stream is interrupted. So its part is reserved until the
// assignment ends, or the data plane comes back by another stream. A server that has
// just started assigns nothing to data planes that may have an assignment until all
// have reported.
//
// A rule with scope fleet is divided among the servers of the fleet first, by the demand of
// their data planes, whatever its fleet.mode is. What passes by way of quotas is not counted for
// [RLS], and the other way round.
type RLQS struct {
	quota.UnimplementedRateLimitQuotaServiceServer
	engine      *core.Engine
	options     RLQSOptions
	descriptors *RLS // maps buckets to calls
	quotas      *quotas

	mu      sync.Mutex // guards what follows
	running bool       // the goroutine that divides
	closed  chan struct{}
	ended   bool
	group   sync.WaitGroup

	warned   uint64        // how many usages had no assignment when that was last logged
	warnedAt clock.Instant // when
}

// NewRLQS returns the quota service that divides the limits that the rules of the engine set.
func NewRLQS(engine *core.Engine, options RLQSOptions) *RLQS {
	options.setDefaults()
	s := &RLQS{engine: engine, options: options, closed: make(chan struct{})}
	s.descriptors = NewRLS(engine, RLSOptions{
		OriginKey: options.OriginKey, IPv6Prefix: options.IPv6Prefix,
	})
	s.quotas = newQuotas(options, engine.Clock().Now(), s.limitOf)
	return s
}

// Close ends all streams with UNAVAILABLE, so that data planes go to another server. Their
// assignments live on.
func (s *RLQS) Close() {
	s.mu.Lock()
	if !s.ended {
		s.ended = true
		close(s.closed)
	}
	s.mu.Unlock()
	s.group.Wait()
}

// RLQSStatus is what a [RLQS] keeps.
type RLQSStatus struct {
	Streams    int    // of data planes
	Buckets    int    // that they report, each counted once
	Shares     int    // the buckets of all of them, with those of streams that have ended
	Unassigned uint64 // usages reported that were beyond a bound
}

// Status returns what the service keeps now.
func (s *RLQS) Status() RLQSStatus {
	q := s.quotas
	q.mu.Lock()
	defer q.mu.Unlock()
	return RLQSStatus{Streams: q.streams, Buckets: len(q.buckets), Shares: q.shares, Unassigned: q.unassigned}
}

// open opens a stream of a domain. wake receives when there is something to send.
func (s *RLQS) open(ctx context.Context, domain string, wake chan struct{}) (*quotaStream, error) {
	if domain == "" || len(domain) > s.options.MaxBucketSize {
		return nil, status.Error(codes.InvalidArgument, "the first report has no domain, or one that is too long")
	}
	if _, served := domainOf(s.engine, domain); !served {
		return nil, status.Errorf(codes.NotFound, "the domain %s is not served", rule.Quote(domain))
	}
	host := ""
	if from, ok := peer.FromContext(ctx); ok {
		host = from.Addr.String()
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
	}
	s.run()
	return newQuotaStream(domain, host, wake), nil
}

// mayServe says whether a bucket is within the bounds. Others get no assignment.
func (s *RLQS) mayServe(id map[string]string) bool {
	size := 0
	for key, value := range id {
		size += len(key) + len(value)
	}
	return len(id) > 0 && len(id) <= s.options.MaxEntries && size <= s.options.MaxBucketSize
}

// elapsedOf returns a duration of a message, 0 if it makes no sense.
func elapsedOf(d *durationpb.Duration) time.Duration {
	if d.CheckValid() != nil {
		return 0
	}
	return min(max(d.AsDuration(), 0), time.Hour)
}

// run starts the goroutine that divides, unless it runs.
func (s *RLQS) run() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running || s.ended {
		return
	}
	s.running = true
	s.group.Go(s.divide)
}

// divide divides limits for as long as there is a stream or a bucket.
func (s *RLQS) divide() {
	timer, divided := s.engine.Clock().NewTimer(divideInterval), s.engine.Clock().Now()
	defer timer.Stop()
	for {
		select {
		case <-timer.C():
		case <-s.closed:
			s.quotas.releaseFleet(s.engine.Clock().Now())
			return
		}
		now := s.engine.Clock().Now()
		if now.Sub(divided) >= divideInterval {
			if divided = now; !s.step(now) {
				return
			}
		}
		timer.Reset(s.quotas.count(now))
	}
}

// step divides once. If there is nothing left to do, it says so, and another stream starts the
// goroutine again.
func (s *RLQS) step(now clock.Instant) (busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = s.quotas.step(now)
	s.warn(now)
	return s.running
}

// warn logs, once a minute, that buckets are beyond a bound: their requests are not limited here.
func (s *RLQS) warn(now clock.Instant) {
	is := s.Status()
	if is.Unassigned == s.warned || s.warned > 0 && now.Sub(s.warnedAt) < time.Minute {
		return
	}
	s.options.Logger.Warn("penstock: buckets are beyond a bound of the quota service and get no assignment: their data planes do as no_assignment_behavior says",
		slog.Uint64("usages", is.Unassigned-s.warned), slog.Int("buckets", is.Buckets), slog.Int("shares", is.Shares))
	s.warned, s.warnedAt = is.Unassigned, now
}

// message returns an action as Envoy reads it.
func (a *quotaAction) message() *quota.RateLimitQuotaResponse_BucketAction {
	message := &quota.RateLimitQuotaResponse_BucketAction{BucketId: &quota.BucketId{Bucket: a.id}}
	if a.abandon {
		message.BucketAction = &quota.RateLimitQuotaResponse_BucketAction_AbandonAction_{
			AbandonAction: &quota.RateLimitQuotaResponse_BucketAction_AbandonAction{},
		}
		return message
	}
	message.BucketAction = &quota.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction_{
		QuotaAssignmentAction: &quota.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction{
			AssignmentTimeToLive: durationpb.New(a.ttl), RateLimitStrategy: a.assignment.strategy(),
		},
	}
	return message
}

// strategy returns an assignment as Envoy reads it.
func (a assignment) strategy() *typev3.RateLimitStrategy {
	blanket := typev3.RateLimitStrategy_DENY_ALL
	switch {
	case math.IsInf(a.rate, 1):
		blanket = typev3.RateLimitStrategy_ALLOW_ALL
	case a.rate > 0:
		return &typev3.RateLimitStrategy{Strategy: &typev3.RateLimitStrategy_TokenBucket{TokenBucket: &typev3.TokenBucket{
			MaxTokens: a.maxTokens, TokensPerFill: wrapperspb.UInt32(a.tokens),
			FillInterval: durationpb.New(time.Duration(a.interval) * time.Second),
		}}}
	}
	return &typev3.RateLimitStrategy{Strategy: &typev3.RateLimitStrategy_BlanketRule_{BlanketRule: blanket}}
}
