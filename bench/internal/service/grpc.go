package service

import (
	"context"
	"fmt"

	"github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/base"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
)

// newGRPC makes a service with the method Check of health checks. Its Call calls the
// interceptor.
func newGRPC(guard Guard, limit int) (*Service, error) {
	const method = grpc_health_v1.Health_Check_FullMethodName
	intercept := func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		return next(ctx, request)
	}
	switch guard {
	case Penstock:
		engine, err := penstockEngine(method, limit)
		if err != nil {
			return nil, err
		}
		intercept = penstockgrpc.UnaryServerInterceptor(engine, penstockgrpc.Options{})
	case Sentinel:
		if err := limitSentinel(method, limit); err != nil {
			return nil, err
		}
		intercept = sentinelGRPC
	case Bare:
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(intercept))
	grpc_health_v1.RegisterHealthServer(server, healthy{})
	info := &grpc.UnaryServerInfo{FullMethod: method}
	request := new(grpc_health_v1.HealthCheckRequest)
	handler := func(ctx context.Context, request any) (any, error) {
		return healthy{}.Check(ctx, request.(*grpc_health_v1.HealthCheckRequest))
	}
	return &Service{
		Call: func() bool {
			_, err := intercept(context.Background(), request, info, handler)
			return err == nil
		},
		serve: server.Serve,
		stop:  server.Stop,
		dial:  dialGRPC,
	}, nil
}

func sentinelGRPC(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	entry, blocked := enterSentinel(info.FullMethod, base.ResTypeRPC)
	if blocked != nil {
		return nil, blocked
	}
	defer entry.Exit()
	reply, err := next(ctx, request)
	if err != nil {
		api.TraceError(entry, err)
	}
	return reply, err
}

type healthy struct {
	grpc_health_v1.UnimplementedHealthServer
}

// Check returns an empty response.
func (healthy) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	return new(grpc_health_v1.HealthCheckResponse), nil
}

func dialGRPC(address string) (*Client, error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	health := grpc_health_v1.NewHealthClient(conn)
	request := new(grpc_health_v1.HealthCheckRequest)
	return &Client{
		Call:  func() (bool, error) { return check(health, request) },
		Close: func() { _ = conn.Close() },
	}, nil
}

// check returns whether a call passed. Penstock refuses with RESOURCE_EXHAUSTED; what Sentinel
// returns is UNKNOWN to clients. Any other failure is an error.
func check(health grpc_health_v1.HealthClient, request *grpc_health_v1.HealthCheckRequest) (bool, error) {
	_, err := health.Check(context.Background(), request)
	switch status.Code(err) {
	case codes.OK:
		return true, nil
	case codes.ResourceExhausted, codes.Unknown:
		return false, nil
	}
	return false, fmt.Errorf("service: %w", err)
}
