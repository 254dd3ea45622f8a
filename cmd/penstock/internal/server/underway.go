package server

import (
	"context"
	"sync/atomic"

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
	count   atomic.Int64
	shed    atomic.Uint64
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
	return context.WithValue(ctx, leavesWithoutKey{}, context.AfterFunc(ctx, u.leave)), nil
}

// leavesWithoutKey is of the function that keeps a request over gRPC which was let in from leaving when its
// context ends, as it may never come to be handled: that would start a goroutine.
type leavesWithoutKey struct{}

// intercept has requests leave that were handled.
func (u *underWay) intercept(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	answer, err := handler(ctx, request)
	if leavesWithout, ok := ctx.Value(leavesWithoutKey{}).(func() bool); ok && leavesWithout() {
		u.leave()
	}
	return answer, err
}

// tooMany is what a request hears that is one too many.
const tooMany = "the server has as many requests under way as it can answer in time"

// enter counts a request, unless there are too many.
func (u *underWay) enter() bool {
	if !u.backlog.admits(u.count.Add(1)) {
		u.count.Add(-1)
		u.shed.Add(1)
		return false
	}
	return true
}

// leave notes that a request that has entered is answered.
func (u *underWay) leave() { u.count.Add(-1) }
