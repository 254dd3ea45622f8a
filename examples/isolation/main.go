// Isolation shows a pool of three places and ten callers who come at once: three work,
// four wait for a place, and the rest is refused at once.
//
//	go run ./examples/isolation
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/isolation"
)

const (
	callers = 10
	work    = 300 * time.Millisecond
)

func main() {
	err := penstock.Load(penstock.Rules{Isolation: []isolation.Rule{
		{Name: "render-pool", Resource: "reports:render", Limit: 3, MaxWait: 2 * time.Second, MaxQueue: 4},
	}})
	if err != nil {
		log.Fatal(err)
	}
	start := time.Now()
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() { render(caller, start) })
	}
	all.Wait()
	seen := penstock.Default().Resource("reports:render").Snapshot()
	fmt.Printf("passed %d, of which %d waited; refused %d\n", seen.Passed, seen.Waited, seen.Blocked)
}

func render(caller int, start time.Time) {
	guard, err := penstock.Entry(context.Background(), "reports:render")
	since := time.Since(start).Round(10 * time.Millisecond)
	if refused, ok := errors.AsType[*penstock.BlockError](err); ok {
		fmt.Printf("%5v  caller %d: refused by %q\n", since, caller, refused.Rule)
		return
	} else if err != nil {
		fmt.Printf("%5v  caller %d: %v\n", since, caller, err)
		return
	}
	defer guard.Exit()
	fmt.Printf("%5v  caller %d: has a place for %v\n", since, caller, work)
	time.Sleep(work)
}
