package server

import (
	"context"
	"log/slog"
	"path"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

const (
	maxHeaderList     = 16 << 10 // bytes
	connectionTimeout = 10 * time.Second
	keepaliveTime     = time.Minute
	minPingInterval   = 10 * time.Second
)

// grpcOptions returns the bounds of the gRPC server, and what it counts.
func (s *server) grpcOptions() []grpc.ServerOption {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(s.MaxMessage),
		grpc.MaxConcurrentStreams(s.MaxStreams),
		grpc.MaxHeaderListSize(maxHeaderList),
		grpc.ConnectionTimeout(connectionTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingInterval, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(s.underWay.intercept, s.requests.intercept),
		grpc.InTapHandle(s.underWay.admit),
	}
	if s.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(s.TLS)))
	}
	return options
}

// requests counts the requests of the server, and logs those that it could not decide.
type requests struct {
	logger *slog.Logger
	total  *prometheus.CounterVec
	logged atomic.Int64 // the second in which an error was last logged
}

func newRequests(logger *slog.Logger) *requests {
	return &requests{logger: logger, total: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "penstock_serve_requests_total",
		Help: "Requests that proxies made, by method and by how they ended, as a gRPC code or a status. Those over gRPC that are not OK were not decided.",
	}, []string{"method", "code"})}
}

// intercept counts the requests of methods that the server has.
func (r *requests) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	answer, err := handler(ctx, request)
	r.count(path.Base(info.FullMethod), status.Code(err), err)
	return answer, err
}

// count counts a request, and logs one that could not be decided, at most one a second.
func (r *requests) count(method string, code codes.Code, err error) {
	r.total.WithLabelValues(method, code.String()).Inc()
	if code != codes.OK && code != codes.Canceled && r.mayLog() {
		r.logger.Error("penstock: a request was not decided, and the proxy does as it is configured: Envoy's rate limit filter lets the call pass by default",
			slog.String("method", method), slog.String("code", code.String()), slog.Any("error", err))
	}
}

// mayLog is true once a second.
func (r *requests) mayLog() bool {
	now, last := time.Now().Unix(), r.logged.Load()
	return last != now && r.logged.CompareAndSwap(last, now)
}
