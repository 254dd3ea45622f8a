package main

import (
	"context"
	"fmt"
	"os"
)

func Example() {
	if err := run(context.Background(), os.Stdout, ""); err != nil {
		fmt.Println(err)
	}
	// Output:
	// span GET /orders/{id}
	// span GET /orders/{id}
	// span GET
	//   penstock.refused by the rule orders-limit
	// span grpc.health.v1.Health/Check
	// span grpc.health.v1.Health/Check
	// span grpc.health.v1.Health/Check
	//   penstock.refused by the rule check-limit
	// http.server.request.duration 200: 2
	// http.server.request.duration 429: 1
	// penstock.requests /grpc.health.v1.Health/Check acquired: 2
	// penstock.requests /grpc.health.v1.Health/Check refused: 1
	// penstock.requests GET:/orders/{id} acquired: 2
	// penstock.requests GET:/orders/{id} refused: 1
}
