package server

import (
	"context"
	"sync/atomic"
	"time"

	auth "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// underWay bounds the requests to decide that are under way, from when they arrive: a proxy that
// waits for an answer longer than its timeout has made its caller wait for nothing.
type underWay struct {
	backlog backlog
	begun   time.Time
	count   atomic.Int64
	shed    atomic.Uint64
}

// start has at most so many requests be under way.
func (u *underWay) start(most int64) {
	u.begun = time.Now()
	u.backlog.setMost(most)
}

// admit lets a request in, or answers at once that there are too many.
func (u *underWay) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	switch info.FullMethodName {
	case ratelimit.RateLimitService_ShouldRateLimit_FullMethodName, auth.Authorization_Check_FullMethodName:
	default:
		return ctx, nil // streams, and what operators ask
	}
	if !u.enter() {
		return ctx, status.Error(codes.Unavailable, tooMany)
	}
	of := &entered{at: time.Since(u.begun)}
	ctx = context.WithValue(ctx, enteredKey{}, of)
	of.leavesWithout = context.AfterFunc(ctx, u.leave)
	return ctx, nil
}

// entered is a request over gRPC that was let in. It leaves when its context ends, for it may never
// come to be handled, unless leavesWithout is called before: that starts no goroutine.
type entered struct {
	at            time.Duration
	leavesWithout func() bool
}

type enteredKey struct{}

// intercept has requests leave that were handled.
func (u *underWay) intercept(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	of, ok := ctx.Value(enteredKey{}).(*entered)
	if ok {
		now := time.Since(u.begun)
		u.backlog.observe(of.at, now, u.count.Load())
	}
	answer, err := handler(ctx, request)
	if ok && of.leavesWithout() {
		u.leave()
	}
	return answer, err
}

// tooMany is what a request hears that is one too many.
const tooMany = "the server has as many requests under way as it can answer in time"

// enter counts a request, unless there are too many.
func (u *underWay) enter() bool {
	if u.count.Add(1) > u.backlog.bound.Load() {
		u.count.Add(-1)
		u.shed.Add(1)
		return false
	}
	return true
}

// leave notes that a request that has entered is answered.
func (u *underWay) leave() { u.count.Add(-1) }
