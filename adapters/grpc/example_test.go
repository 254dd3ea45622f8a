package penstockgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// exampleEngine lets the service be asked for its health once an hour.
func exampleEngine() *core.Engine {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	err := engine.Load(rules.Set{Flow: []flow.Rule{
		{Name: "health", Resource: healthpb.Health_Check_FullMethodName, Limit: 1, Window: time.Hour},
	}})
	if err != nil {
		panic(err)
	}
	return engine
}

// exampleServer serves until stop is called.
func exampleServer(opts ...grpc.ServerOption) (address string, stop func()) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(opts...)
	healthpb.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().String(), server.Stop
}

func exampleClient(address string, opts ...grpc.DialOption) *grpc.ClientConn {
	conn, err := grpc.NewClient(address, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		panic(err)
	}
	return conn
}

func ExampleUnaryServerInterceptor() {
	engine := exampleEngine()
	defer engine.Close()
	options := penstockgrpc.Options{
		ShowRules: true,
		Origin: func(ctx context.Context) string {
			return strings.Join(metadata.ValueFromIncomingContext(ctx, "x-caller"), ",")
		},
	}
	address, stop := exampleServer(
		grpc.ChainUnaryInterceptor(penstockgrpc.UnaryServerInterceptor(engine, options)),
		grpc.ChainStreamInterceptor(penstockgrpc.StreamServerInterceptor(engine, options)),
	)
	defer stop()

	conn := exampleClient(address)
	defer conn.Close()
	for range 2 {
		_, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
		fmt.Println(status.Code(err))
		for _, detail := range status.Convert(err).Details() {
			if quota, ok := detail.(*errdetails.QuotaFailure); ok {
				violation := quota.GetViolations()[0]
				fmt.Println(violation.GetSubject(), violation.GetDescription())
			}
		}
	}
	// Output:
	// OK
	// ResourceExhausted
	// /grpc.health.v1.Health/Check refused by the flow rule "health"
}

func ExampleUnaryClientInterceptor() {
	engine := exampleEngine()
	defer engine.Close()
	address, stop := exampleServer()
	defer stop()

	conn := exampleClient(address,
		grpc.WithChainUnaryInterceptor(penstockgrpc.UnaryClientInterceptor(engine, penstockgrpc.Options{})),
		grpc.WithChainStreamInterceptor(penstockgrpc.StreamClientInterceptor(engine, penstockgrpc.Options{})),
	)
	defer conn.Close()
	for range 2 {
		_, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
		fmt.Println(status.Code(err), errors.Is(err, core.ErrBlocked))
	}
	// Output:
	// OK false
	// ResourceExhausted true
}

// Health checks and reflection are better left alone.
func ExampleOptions_resource() {
	options := penstockgrpc.Options{
		Resource: func(_ context.Context, fullMethod string) string {
			if strings.HasPrefix(fullMethod, "/grpc.") {
				return ""
			}
			return fullMethod
		},
	}
	fmt.Printf("%q\n", options.Resource(context.Background(), "/grpc.health.v1.Health/Check"))
	fmt.Printf("%q\n", options.Resource(context.Background(), "/shop.Orders/Create"))
	// Output:
	// ""
	// "/shop.Orders/Create"
}

// Calls cost what their requests ask for, and clients with a retry policy are
// asked to wait up to 100 ms; the names of rules stay within the service.
func ExampleOptions_tokens() {
	options := penstockgrpc.Options{
		Tokens: func(_ context.Context, _ string, request any) int {
			if check, ok := request.(*healthpb.HealthCheckRequest); ok {
				return 1 + len(check.GetService())
			}
			return 1
		},
		MaxPushback: 100 * time.Millisecond,
	}
	engine := exampleEngine()
	defer engine.Close()
	address, stop := exampleServer(grpc.ChainUnaryInterceptor(penstockgrpc.UnaryServerInterceptor(engine, options)))
	defer stop()

	conn := exampleClient(address)
	defer conn.Close()
	_, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{Service: "orders"})
	fmt.Println(status.Code(err), status.Convert(err).Message())
	// Output:
	// ResourceExhausted penstock: the call was refused
}

// A handler that guards a resource of its own tells its caller properly.
func ExampleError() {
	engine := exampleEngine()
	defer engine.Close()
	handle := func(ctx context.Context) error {
		return penstockgrpc.Error(engine.Do(ctx, "orders", func(context.Context) error { return nil }))
	}
	fmt.Println(handle(context.Background()))
	engine.Close()
	fmt.Println(handle(context.Background()))
	// Output:
	// <nil>
	// rpc error: code = Unavailable desc = penstock: engine is closed
}
