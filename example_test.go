package penstock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock-go/penstock"
)

func ExampleEntry() {
	defer func() { _ = penstock.Load(penstock.Rules{}) }() // the engine is the process's
	_ = penstock.Load(penstock.Rules{Flow: []penstock.FlowRule{
		{Name: "create-qps", Resource: "orders:create", Limit: 2},
	}})
	for range 3 {
		guard, err := penstock.Entry(context.Background(), "orders:create")
		var blocked *penstock.BlockError
		if errors.As(err, &blocked) {
			fmt.Println("refused by", blocked.Rule, "retry after", blocked.RetryAfter)
			continue
		}
		fmt.Println("creating an order")
		guard.Exit()
	}
	// Output:
	// creating an order
	// creating an order
	// refused by create-qps retry after 1s
}

func ExampleDo() {
	create := func(context.Context) error {
		fmt.Println("creating an order")
		return nil
	}
	fmt.Println(penstock.Do(context.Background(), "orders:create", create, penstock.Tokens(5)))
	// Output:
	// creating an order
	// <nil>
}
