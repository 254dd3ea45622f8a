package metriclog_test

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/penstock-go/penstock/core"
	metriclog "github.com/penstock-go/penstock/metrics/log"
)

// The log runs beside the service, and what it has written is found again.
func Example() {
	dir, err := os.MkdirTemp("", "penstock")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	engine := core.New(core.Config{})
	defer engine.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := metriclog.Run(ctx, engine, metriclog.Options{Dir: dir, App: "shop"}); err != nil {
			panic(err)
		}
	})

	guard, err := engine.Entry(ctx, "orders:create")
	if err != nil {
		panic(err)
	}
	guard.Exit()
	cancel() // the service ends
	running.Wait()

	found, err := metriclog.Search(metriclog.Query{Dir: dir, App: "shop", Resource: "orders:create"})
	if err != nil {
		panic(err)
	}
	for _, line := range found.Lines {
		fmt.Println(line.Resource, line.Passed)
	}
	// Output: orders:create 1
}
