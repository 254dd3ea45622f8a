// Etcd shows rules that live in etcd: one is put, takes effect, is changed, and
// is deleted. The etcd server runs in this process.
//
//	go run ./examples/etcd
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server, err := etcdtest.Start(etcdtest.Options{})
	if err != nil {
		return err
	}
	defer server.Stop()
	client := server.Client()
	source, err := etcd.New(client, etcd.Prefix("shop"), etcd.Options{})
	if err != nil {
		return err
	}
	if err := penstock.Follow(ctx, source); err != nil {
		return err
	}
	if err := penstock.Ready(ctx); err != nil {
		return err
	}
	fmt.Println("no rules:", greet(ctx), "of 20 calls passed")
	for _, limit := range []int{5, 15} {
		document := fmt.Sprintf("flow: [{resource: greet, limit: %d}]", limit)
		if _, err := client.Put(ctx, etcd.Prefix("shop")+"greet.yaml", document); err != nil {
			return err
		}
		time.Sleep(1100 * time.Millisecond) // the rule is in force within a few ms; the window begins anew
		fmt.Println(document, greet(ctx), "of 20 calls passed")
	}
	if _, err := client.Delete(ctx, etcd.Prefix("shop")+"greet.yaml"); err != nil {
		return err
	}
	time.Sleep(100 * time.Millisecond)
	fmt.Println("deleted:", greet(ctx), "of 20 calls passed")
	return nil
}

func greet(ctx context.Context) (passed int) {
	for range 20 {
		if penstock.Do(ctx, "greet", func(context.Context) error { return nil }) == nil {
			passed++
		}
	}
	return passed
}
