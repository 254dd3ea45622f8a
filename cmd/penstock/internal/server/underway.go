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
	most  int64
	count atomic.Int64
	shed  atomic.Uint64
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
	of := new(entered)
	ctx = context.WithValue(ctx, enteredKey{}, of)
	of.leavesWithout = context.AfterFunc(ctx, u.leave)
	return ctx, nil
}

// entered is a request over gRPC that was let in. It leaves when its context ends, for it may never
// come to be handled, unless leavesWithout is called before: that starts no goroutine.
type entered struct{ leavesWithout func() bool }

type enteredKey struct{}

// intercept has requests leave that were handled.
func (u *underWay) intercept(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	answer, err := handler(ctx, request)
	if of, ok := ctx.Value(enteredKey{}).(*entered); ok && of.leavesWithout() {
		u.leave()
	}
	return answer, err
}

// tooMany is what a request hears that is one too many.
const tooMany = "the server has as many requests under way as it may have"

// enter counts a request, unless there are too many.
func (u *underWay) enter() bool {
	if u.count.Add(1) > u.most {
		u.count.Add(-1)
		u.shed.Add(1)
		return false
	}
	return true
}

// leave notes that a request that has entered is answered.
func (u *underWay) leave() { u.count.Add(-1) }
