// Throttle shows a queue: twenty callers come at once and leave evenly spaced,
// as far as they are willing to wait.
//
//	go run ./examples/throttle
package main

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/flow"
)

func main() {
	err := penstock.Load(penstock.Rules{Flow: []penstock.FlowRule{{
		Resource:  "reports:render",
		Limit:     10, // one every 100 ms
		Algorithm: flow.Throttle,
		MaxWait:   time.Second,
	}}})
	if err != nil {
		log.Fatal(err)
	}
	start := time.Now()
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			guard, err := penstock.Entry(context.Background(), "reports:render")
			waited := time.Since(start).Round(10 * time.Millisecond)
			if err != nil {
				fmt.Printf("after %6v: %v\n", waited, err)
				return
			}
			defer guard.Exit()
			fmt.Printf("after %6v: rendering\n", waited)
		})
	}
	callers.Wait()
}
