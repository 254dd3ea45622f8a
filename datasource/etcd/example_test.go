package etcd_test

import (
	"context"
	"crypto/tls"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
)

// A service loads its rules from etcd and follows their changes.
func ExampleOpen() {
	follow := func(ctx context.Context, engine *core.Engine, secure *tls.Config) error {
		source, err := etcd.Open(clientv3.Config{
			Endpoints: []string{"https://etcd-1:2379", "https://etcd-2:2379", "https://etcd-3:2379"},
			TLS:       secure,
		}, etcd.Prefix("shop"), etcd.Options{})
		if err != nil {
			return err
		}
		return engine.Follow(ctx, source)
	}
	_ = follow
}

// A service that already has an etcd client shares it with the source.
func ExampleNew() {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"localhost:2379"}})
	if err != nil {
		panic(err)
	}
	defer func() { _ = client.Close() }()
	source, err := etcd.New(client, "/penstock/shop", etcd.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(source.Name())
	// Output: etcd:/penstock/shop/
}
