package etcd_test

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/etcd"
)

func Example() {
	backend, err := etcd.Open(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}}, "/penstock/shop/")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = backend.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err = backend.Announce(ctx, fleet.Instance{ID: "shop-1"}, true)
	fmt.Println(err != nil) // etcd is not there
	// Output: true
}
