package etcdtest_test

import (
	"context"
	"fmt"

	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

// A server for as long as a test or a demonstration lasts.
func Example() {
	server, err := etcdtest.Start(etcdtest.Options{})
	if err != nil {
		panic(err)
	}
	defer server.Stop()

	ctx := context.Background()
	if _, err := server.Client().Put(ctx, "/penstock/shop/checkout.yaml", "flow: []"); err != nil {
		panic(err)
	}
	response, err := server.Client().Get(ctx, "/penstock/shop/checkout.yaml")
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", response.Kvs[0].Value)
	// Output: flow: []
}
