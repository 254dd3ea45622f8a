package etcd_test

import (
	"context"
	"crypto/tls"
	"errors"
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

// A service keeps the lists in etcd that its access rules name, by the connection settings
// of its rules.
func ExampleSource_WatchLists() {
	follow := func(ctx context.Context, engine *core.Engine, source *etcd.Source) error {
		if err := engine.Follow(ctx, source); err != nil {
			return err
		}
		lists, err := source.WatchLists(ctx, engine.Lists())
		if err != nil {
			return err
		}
		return errors.Join(engine.Ready(ctx), lists.Ready(ctx))
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
