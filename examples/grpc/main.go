// Grpc shows a gRPC service whose methods are guarded, unary ones and streams:
// interceptors on the server, resources named by the full method. It calls itself
// and prints the answers with their details.
//
//	go run ./examples/grpc
package main

import (
	"context"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock"
	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
)

func main() {
	err := penstock.Load(penstock.Rules{Flow: []penstock.FlowRule{
		{Name: "check-qps", Resource: "/grpc.health.v1.Health/Check", Limit: 3},
	}})
	if err != nil {
		log.Fatal(err)
	}
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(penstockgrpc.UnaryServerInterceptor(nil, penstockgrpc.Options{})),
		grpc.ChainStreamInterceptor(penstockgrpc.StreamServerInterceptor(nil, penstockgrpc.Options{})),
	)
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	client := grpc_health_v1.NewHealthClient(connection)
	for range 5 {
		answer, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		if err == nil {
			fmt.Println(answer.GetStatus())
			continue
		}
		refusal := status.Convert(err)
		fmt.Println(refusal.Code(), refusal.Message())
		for _, detail := range refusal.Details() {
			fmt.Printf("  %T %v\n", detail, detail)
		}
	}
	return nil
}
