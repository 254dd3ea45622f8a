package serve

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	quota "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/clock"
)

// readingStream counts how often a server has gone on to read a message.
type readingStream struct {
	grpc.ServerStream
	reads *atomic.Int64
}

func (s readingStream) RecvMsg(m any) error {
	s.reads.Add(1)
	return s.ServerStream.RecvMsg(m)
}

// remotePlane is an Envoy with one bucket and a stream over loopback.
type remotePlane struct {
	demand float64 // requests per second
	next   clock.Instant
	stream quota.RateLimitQuotaService_StreamRateLimitQuotasClient

	mu sync.Mutex // guards what follows
	envoyBucket
	known bool
}

// receive takes assignments, as they are written, until the stream ends.
func (p *remotePlane) receive(at clock.Clock) {
	for {
		message, err := p.stream.Recv()
		if err != nil {
			return
		}
		p.mu.Lock()
		for _, action := range message.GetBucketAction() {
			to := action.GetQuotaAssignmentAction()
			p.assign(at.Now(), readAssignment(to.GetRateLimitStrategy()), to.GetAssignmentTimeToLive().AsDuration())
		}
		p.mu.Unlock()
	}
}

// readAssignment reads a strategy as Envoy does.
func readAssignment(of *typev3.RateLimitStrategy) assignment {
	bucket := of.GetTokenBucket()
	switch {
	case bucket != nil:
		a := assignment{
			maxTokens: bucket.GetMaxTokens(), tokens: bucket.GetTokensPerFill().GetValue(), interval: bucket.GetFillInterval().GetSeconds(),
		}
		a.rate = float64(a.tokens) / float64(a.interval)
		return a
	case of.GetBlanketRule() == typev3.RateLimitStrategy_DENY_ALL:
		return assignment{}
	}
	return assignment{rate: math.Inf(1)}
}

// remoteWorld is data planes that ask a service over loopback, on its virtual clock.
type remoteWorld struct {
	*quotaServer
	t      *testing.T
	planes []*remotePlane
	random *rand.Rand
	at     clock.Instant
	reads  atomic.Int64
	sent   int64
}

func newRemoteWorld(t *testing.T, count int, newer bool, document string) *remoteWorld {
	w := &remoteWorld{t: t, random: rand.New(rand.NewPCG(1, 2))}
	w.quotaServer = newQuotaServer(t, RLQSOptions{}, document, grpc.StreamInterceptor(
		func(of any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			return handler(of, readingStream{stream, &w.reads})
		}))
	w.at = w.now.Now()
	var group sync.WaitGroup
	t.Cleanup(func() {
		w.service.Close()
		group.Wait()
	})
	for range count {
		p := &remotePlane{stream: w.open(), envoyBucket: envoyBucket{newer: newer}}
		p.next = w.at.Add(time.Duration(w.random.Int64N(int64(DefaultReportInterval))))
		group.Go(func() { p.receive(w.now) })
		w.planes = append(w.planes, p)
	}
	return w
}

// second lets requests come for a second, and returns how many passed.
func (w *remoteWorld) second() (passed float64) {
	for range time.Second / divideInterval {
		for range divideInterval / slot {
			w.at = w.at.Add(slot)
			for _, p := range w.planes {
				passed += w.slot(p)
			}
		}
		require.Eventually(w.t, func() bool { return w.reads.Load() == int64(len(w.planes))+w.sent }, eventually, time.Millisecond,
			"the reports are read")
		w.divided(divideInterval)
		require.Eventually(w.t, w.isTold, eventually, time.Millisecond, "all data planes have their assignments")
	}
	return passed
}

// slot lets requests come to a data plane, which reports when it is time.
func (w *remoteWorld) slot(p *remotePlane) (passed float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := math.Floor(p.demand*slot.Seconds() + w.random.Float64())
	passed = p.decide(w.at, n, slot)
	if isFirst := n > 0 && !p.known; !isFirst && (w.at < p.next || !p.known) {
		return passed
	}
	if p.known {
		p.next = p.next.Add(DefaultReportInterval)
	}
	p.known = true
	requests, elapsed := p.report(w.at)
	w.sent++
	require.NoError(w.t, p.stream.Send(report("shop", usage(uint64(requests), elapsed, "resource", "orders"))))
	return passed
}

// isTold says whether data planes have what the server has assigned.
func (w *remoteWorld) isTold() bool {
	var assigned, got []float64
	q := w.service.quotas
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, b := range q.buckets {
		for _, s := range b.shares {
			if s.assigned {
				assigned = append(assigned, s.assignment.rate)
			}
			if s.queued {
				return false
			}
		}
	}
	for _, p := range w.planes {
		p.mu.Lock()
		if p.assigned {
			got = append(got, p.is.rate)
		}
		p.mu.Unlock()
	}
	slices.Sort(assigned)
	slices.Sort(got)
	return slices.Equal(assigned, got)
}

func TestDataPlanesOverLoopbackPassTheLimit(t *testing.T) {
	for _, newer := range []bool{false, true} {
		const limit, settled = 50_000, 20
		w := newRemoteWorld(t, 10, newer, "flow: [{resource: orders, limit: 50000}]")
		for i, p := range w.planes { // one has most of the demand, which is twice the limit
			if p.demand = 0.2 * 2 * limit / 9; i == 0 {
				p.demand = 0.8 * 2 * limit
			}
		}
		all, worst := 0.0, 0.0
		for second := range settled + 20 {
			passed := w.second() / limit
			if second >= settled {
				all, worst = all+passed/20, max(worst, passed)
			}
		}
		assert.InDelta(t, 1, all, 0.01, "newer=%v", newer)
		assert.LessOrEqual(t, worst, 1.03, "newer=%v", newer)
	}
}
