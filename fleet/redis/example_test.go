package redis_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/redis"
)

func Example() {
	server, err := miniredis.Run() // stands in for a server
	if err != nil {
		panic(err)
	}
	defer server.Close()

	store, err := redis.Connect(redis.Options{Addresses: []string{server.Addr()}, App: "shop"})
	if err != nil {
		panic(err)
	}
	defer func() { _ = store.Close() }()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	quota := fleet.Terms{Key: "flow/partner-quota", Limit: 100, Window: time.Hour, Burst: 100}
	replies := make([]fleet.Reply, 2)
	store.Exchange(ctx, []fleet.Request{{Terms: quota, Want: 60}, {Terms: quota, Want: 60}}, replies)
	for _, reply := range replies {
		fmt.Println("granted", reply.Granted, reply.Err)
	}
	// Output:
	// granted 60 <nil>
	// granted 40 <nil>
}
