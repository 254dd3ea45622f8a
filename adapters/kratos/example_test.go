package penstockkratos_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	penstockkratos "github.com/penstock-go/penstock/adapters/kratos"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func ExampleServer() {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	err := engine.Load(rules.Set{Flow: []flow.Rule{{Name: "health", Resource: check, Limit: 1, Window: time.Hour}}})
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := khttp.NewServer(khttp.Listener(listener), khttp.Middleware(
		penstockkratos.Server(engine, penstockkratos.Options{ShowRules: true}),
	))
	server.Route("/").POST("/health", service{finish: succeed}.handle)
	go func() { _ = server.Start(context.Background()) }()
	defer func() { _ = server.Stop(context.Background()) }()

	client, err := khttp.NewClient(context.Background(), khttp.WithEndpoint(listener.Addr().String()))
	if err != nil {
		panic(err)
	}
	for range 2 {
		var reply healthpb.HealthCheckResponse
		err := client.Invoke(context.Background(), "POST", "/health", &healthpb.HealthCheckRequest{}, &reply, khttp.Operation(check))
		if err == nil {
			fmt.Println(reply.GetStatus())
			continue
		}
		refused := kerrors.FromError(err)
		fmt.Println(refused.Code, refused.Reason, refused.Metadata["rule"])
	}
	// Output:
	// SERVING
	// 429 RATE_LIMITED health
}

func ExampleClient() {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	err := engine.Load(rules.Set{Flow: []flow.Rule{{Name: "health", Resource: check, Limit: 0}}})
	if err != nil {
		panic(err)
	}
	client, err := khttp.NewClient(context.Background(), khttp.WithEndpoint("127.0.0.1:1"), khttp.WithMiddleware(
		penstockkratos.Client(engine, penstockkratos.Options{ShowRules: true}),
	))
	if err != nil {
		panic(err)
	}
	var reply healthpb.HealthCheckResponse
	err = client.Invoke(context.Background(), "POST", "/health", &healthpb.HealthCheckRequest{}, &reply, khttp.Operation(check))
	fmt.Println(kerrors.FromError(err).Message) // nothing was sent
	// Output:
	// penstock: "/grpc.health.v1.Health/Check" blocked by flow "health", cannot pass under the present rules
}
