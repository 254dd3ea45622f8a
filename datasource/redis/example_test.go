//go:build unix

package redissource_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/redis/rueidis"

	"github.com/penstock-go/penstock/core"
	redissource "github.com/penstock-go/penstock/datasource/redis"
)

// ExampleOpen follows the rules of an application in a cluster, and takes passwords from a
// file that is renewed.
func ExampleOpen() {
	source, err := redissource.Open(rueidis.ClientOption{
		InitAddress: []string{"redis-1:6379", "redis-2:6379", "redis-3:6379"},
		AuthCredentialsFn: func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			password, err := os.ReadFile("/run/secrets/redis")
			return rueidis.AuthCredentials{Username: "shop", Password: string(password)}, err
		},
	}, redissource.Key("shop"), redissource.Options{PollInterval: 5 * time.Second})
	if err != nil {
		panic(err)
	}
	engine := core.New(core.Config{})
	defer engine.Close()
	if err := engine.Follow(context.Background(), source); err != nil {
		panic(err)
	}
	fmt.Println(source.Name())
	// Output: redis:penstock:shop:rules
}

// ExampleWriter publishes two documents at once, as a pipeline of a repository of rules
// does.
func ExampleWriter() {
	publish := func(ctx context.Context, client rueidis.Client, orders, pay []byte) error {
		writer, err := redissource.NewWriter(client, redissource.Key("shop"))
		if err != nil {
			return err
		}
		revision, err := writer.Apply(ctx, redissource.Edit{
			Put:    map[string][]byte{"orders.yaml": orders, "pay.yaml": pay},
			Delete: []string{"checkout.yaml"},
		})
		if err == nil {
			fmt.Println("published revision", revision)
		}
		return err
	}
	_ = publish
}
