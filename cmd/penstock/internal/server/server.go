// Package server is the server of penstock serve: it decides for proxies by the rules of an
// engine, over gRPC and HTTP.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	auth "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	quota "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/serve"
)

// Config says what a server serves. Engine and Logger are required.
type Config struct {
	Engine *core.Engine
	Logger *slog.Logger

	// GRPC, HTTP and Admin are the addresses to listen at, as host and port; "" for none.
	GRPC, HTTP, Admin string

	// ControlToken is what operators have to say at Admin to act on rules, see [inspect.ControlHandler]; "" if
	// nobody may.
	ControlToken string

	// TLS is for GRPC and HTTP; nil for connections that are not encrypted.
	TLS *tls.Config

	RLS         serve.RLSOptions
	ExtAuthz    serve.HTTPOptions
	ForwardAuth serve.ForwardAuthOptions

	// Hold says how programs ask about their own calls at HTTP; nil if they cannot.
	Hold *serve.HoldOptions

	// RLQS says how quotas are served over gRPC; nil if they are not.
	RLQS *serve.RLQSOptions

	// MaxMessage is how many bytes a message may have, MaxStreams how many requests of one
	// connection over gRPC are served at once, MaxRequests how many of all connections, over HTTP too.
	MaxMessage  int
	MaxStreams  uint32
	MaxRequests int

	// Drain is how long the requests under way may take when the server ends.
	Drain time.Duration
}

// headerTimeout and idleTimeout bound connections over HTTP.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
)

// server is a server that runs.
type server struct {
	Config
	registry *prometheus.Registry
	requests *requests
	underWay underWay
	authz    *serve.ExtAuthz
	quotas   *serve.RLQS // nil if they are not served
	forward  http.Handler
	health   *health.Server
	grpc     *grpc.Server
	http     []*http.Server
	failed   chan error // of listeners; has room for all
}

// Run serves until ctx ends, and then until the requests under way are answered. It serves the
// administrative address at once, and the others when the rules of all sources are in force: a
// proxy is not told that all may pass because the rules are not known yet. The error says why
// it could not serve.
func Run(ctx context.Context, config Config) error {
	s := &server{Config: config, registry: prometheus.NewRegistry(), failed: make(chan error, 4)}
	defer boundGarbage(os.Getenv)()
	s.requests = newRequests(config.Logger)
	s.underWay.backlog.setMost(int64(max(1, config.MaxRequests)))
	following, end := context.WithCancel(ctx)
	defer end()
	go s.underWay.backlog.follow(following, &s.underWay.count)
	var err error
	if s.authz, err = serve.NewExtAuthz(s.Engine, s.ExtAuthz); err != nil {
		return err
	}
	if s.forward, err = s.forwardHandler(); err != nil {
		return err
	}
	if s.RLQS != nil {
		s.quotas = serve.NewRLQS(s.Engine, *s.RLQS)
		defer s.quotas.Close()
	}
	if err := s.register(); err != nil {
		return err
	}
	err = s.run(ctx)
	s.drain()
	return err
}

func (s *server) run(ctx context.Context) error {
	if s.Admin != "" {
		if err := s.serveHTTP(ctx, "admin", s.Admin, s.adminHandler(), nil); err != nil {
			return err
		}
	}
	if err := s.Engine.Ready(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // it was ended before that
		}
		return err
	}
	if s.GRPC != "" {
		if err := s.serveGRPC(ctx); err != nil {
			return err
		}
	}
	if s.HTTP != "" {
		if err := s.serveHTTP(ctx, "http", s.HTTP, s.forward, s.TLS); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.failed:
		return err
	}
}

// listen listens at an address and logs it, with a warning if others can reach it unencrypted.
func (s *server) listen(ctx context.Context, what, address string, secure bool) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", what, err)
	}
	at, ok := listener.Addr().(*net.TCPAddr)
	if ok && !at.IP.IsLoopback() && !secure {
		s.Logger.Warn("penstock: whoever reaches the address can use it, and read what is sent: listen on loopback, or use TLS with client certificates",
			slog.String("for", what), slog.String("address", listener.Addr().String()))
	}
	s.Logger.Info("penstock: serving", slog.String("for", what), slog.String("address", listener.Addr().String()))
	return listener, nil
}

func (s *server) serveGRPC(ctx context.Context) error {
	listener, err := s.listen(ctx, "grpc", s.GRPC, s.TLS != nil && s.TLS.ClientCAs != nil)
	if err != nil {
		return err
	}
	s.grpc = grpc.NewServer(s.grpcOptions()...)
	s.health = health.NewServer()
	ratelimit.RegisterRateLimitServiceServer(s.grpc, serve.NewRLS(s.Engine, s.RLS))
	auth.RegisterAuthorizationServer(s.grpc, s.authz)
	if s.quotas != nil {
		quota.RegisterRateLimitQuotaServiceServer(s.grpc, s.quotas)
	}
	healthpb.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	for name := range s.grpc.GetServiceInfo() {
		s.health.SetServingStatus(name, healthpb.HealthCheckResponse_SERVING)
	}
	go func() {
		if err := s.grpc.Serve(listener); err != nil {
			s.failed <- fmt.Errorf("serving gRPC: %w", err)
		}
	}()
	return nil
}

// serveHTTP serves a handler at an address.
func (s *server) serveHTTP(ctx context.Context, what, address string, handler http.Handler, config *tls.Config) error {
	listener, err := s.listen(ctx, what, address, config != nil && config.ClientCAs != nil)
	if err != nil {
		return err
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug),
	}
	s.http = append(s.http, server)
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("serving %s: %w", what, err)
		}
	}()
	return nil
}

// drain ends the server once the requests under way have been answered, or Drain has passed.
func (s *server) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), s.Drain)
	defer cancel()
	if s.health != nil {
		s.health.Shutdown()
	}
	if s.quotas != nil {
		s.quotas.Close() // its streams would not end by themselves
	}
	if s.grpc != nil {
		ended := make(chan struct{})
		go func() {
			s.grpc.GracefulStop()
			close(ended)
		}()
		select {
		case <-ended:
		case <-ctx.Done():
			s.Logger.Warn("penstock: requests under way are cut off", slog.Duration("after", s.Drain))
		}
		s.grpc.Stop()
		<-ended
	}
	for _, server := range s.http {
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	}
}
