package penstockredis_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	penstockredis "github.com/penstock-go/penstock/adapters/redis"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func Example() {
	server, err := miniredis.Run() // stands for a Redis server
	if err != nil {
		panic(err)
	}
	defer server.Close()

	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	if err := engine.Load(rules.Set{Flow: []flow.Rule{{Name: "scans", Resource: "redis:KEYS", Limit: 0}}}); err != nil {
		panic(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = client.Close() }()
	client.AddHook(penstockredis.NewHook(engine, penstockredis.Options{}))

	ctx := context.Background()
	fmt.Println(client.Set(ctx, "greeting", "hello", 0).Result())
	_, err = client.Keys(ctx, "*").Result()
	fmt.Println(errors.Is(err, core.ErrBlocked), err)
	// Output:
	// OK <nil>
	// true penstock: "redis:KEYS" blocked by flow "scans", cannot pass under the present rules
}
