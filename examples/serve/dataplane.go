package main

import (
	"context"
	"math"
	"sync"
	"time"

	quota "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"
)

// dataPlane is what Envoy's filter does for one bucket.
type dataPlane struct {
	demand  float64 // requests per second
	asked   float64 // since the last report
	next    time.Time
	since   time.Time // of the last report
	carried float64   // of requests

	mu     sync.Mutex // guards what follows
	server string     // of the stream; "" without
	stream quota.RateLimitQuotaService_StreamRateLimitQuotasClient
	rate   float64 // requests per second that may pass; infinite before the first assignment
	most   float64
	tokens float64
	until  time.Time // when the assignment ends
}

// pass lets requests of a time pass by what was assigned, and returns how many there were and how
// many passed.
func (p *dataPlane) pass(now time.Time, elapsed time.Duration) (asked, passed float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.carried += p.demand * elapsed.Seconds()
	asked = math.Floor(p.carried)
	p.carried -= asked
	passed = asked
	if now.Before(p.until) && !math.IsInf(p.rate, 1) {
		available := p.tokens + p.rate*elapsed.Seconds()
		passed = min(asked, math.Floor(available))
		p.tokens = min(p.most, available-passed)
	}
	p.asked += asked
	return asked, passed
}

// report reports the requests since the last report, by another stream to one of the servers if
// there is none.
func (p *dataPlane) report(ctx context.Context, now time.Time, servers []*grpc.ClientConn, number int) {
	requests, elapsed := p.asked, now.Sub(p.since).Truncate(time.Second)
	p.asked, p.since = 0, now
	p.mu.Lock()
	stream := p.stream
	p.mu.Unlock()
	message := &quota.RateLimitQuotaUsageReports{
		BucketQuotaUsages: []*quota.RateLimitQuotaUsageReports_BucketQuotaUsage{{
			BucketId:           &quota.BucketId{Bucket: map[string]string{"resource": "orders"}},
			NumRequestsAllowed: uint64(requests), TimeElapsed: durationpb.New(elapsed),
		}},
	}
	if stream == nil && len(servers) > 0 {
		var err error
		server := servers[number%len(servers)]
		if stream, err = quota.NewRateLimitQuotaServiceClient(server).StreamRateLimitQuotas(ctx); err != nil {
			return
		}
		message.Domain = "shop"
		p.mu.Lock()
		p.stream, p.server = stream, server.Target()
		p.mu.Unlock()
		go p.receive(stream)
	}
	if stream != nil {
		_ = stream.Send(message)
	}
}

// receive takes assignments until the stream ends. What was assigned then lives on.
func (p *dataPlane) receive(stream quota.RateLimitQuotaService_StreamRateLimitQuotasClient) {
	for {
		message, err := stream.Recv()
		p.mu.Lock()
		if err != nil {
			p.stream, p.server = nil, ""
			p.mu.Unlock()
			return
		}
		for _, action := range message.GetBucketAction() {
			p.assign(action.GetQuotaAssignmentAction())
		}
		p.mu.Unlock()
	}
}

// assign takes an assignment; nil if the bucket was abandoned.
func (p *dataPlane) assign(to *quota.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction) {
	p.until = time.Now().Add(to.GetAssignmentTimeToLive().AsDuration())
	switch of := to.GetRateLimitStrategy(); {
	case of.GetTokenBucket() != nil:
		bucket := of.GetTokenBucket()
		p.rate = float64(bucket.GetTokensPerFill().GetValue()) / bucket.GetFillInterval().AsDuration().Seconds()
		p.most = float64(bucket.GetMaxTokens())
		p.tokens = min(p.tokens, p.most)
	case of != nil && of.GetBlanketRule() == typev3.RateLimitStrategy_DENY_ALL:
		p.rate, p.tokens, p.most = 0, 0, 0
	default:
		p.rate = math.Inf(1)
	}
}

// at returns the server of the stream.
func (p *dataPlane) at() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.server
}

// dial connects to a server.
func dial(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
}
