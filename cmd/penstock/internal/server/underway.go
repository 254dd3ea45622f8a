package server

import (
	"context"
	"sync/atomic"

	auth "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
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
	if u.count.Add(1) > u.most {
		u.count.Add(-1)
		u.shed.Add(1)
		return ctx, status.Error(codes.Unavailable, "the server has as many requests under way as it may have")
	}
	context.AfterFunc(ctx, func() { u.count.Add(-1) })
	return ctx, nil
}
