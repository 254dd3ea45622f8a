// Guard shows the smallest use: a rule in code, a guard around the work, and
// what a refused caller gets to know.
//
//	go run ./examples/guard
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/penstock-go/penstock"
)

func main() {
	err := penstock.Load(penstock.Rules{Flow: []penstock.FlowRule{
		{Name: "create-qps", Resource: "orders:create", Limit: 3},
	}})
	if err != nil {
		log.Fatal(err)
	}
	for order := range 5 {
		err := createOrder(context.Background(), order)
		if blocked, ok := errors.AsType[*penstock.BlockError](err); ok {
			fmt.Printf("order %d: refused by %q, try again in %v\n", order, blocked.Rule, blocked.RetryAfter)
			continue
		}
		fmt.Printf("order %d: created, error: %v\n", order, err)
	}
	s := penstock.Default().Resource("orders:create").Snapshot()
	fmt.Printf("passed %d, blocked %d, failed %d, in flight %d\n", s.Passed, s.Blocked, s.Failed, s.InFlight)
}

func createOrder(ctx context.Context, order int) error {
	guard, err := penstock.Entry(ctx, "orders:create")
	if err != nil {
		return err
	}
	defer guard.Exit()
	if err := store(order); err != nil {
		guard.Fail(err) // counted as a failure of the resource
		return err
	}
	return nil
}

func store(order int) error {
	if order == 1 {
		return errors.New("the disk is full")
	}
	return nil
}
