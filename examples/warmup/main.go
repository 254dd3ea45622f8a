// Warmup shows a cold resource getting warm under full load, on a virtual clock:
// twelve seconds pass in no time.
//
//	go run ./examples/warmup
package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"strings"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	now := clock.NewVirtual(time.Unix(0, 0))
	engine := core.New(core.Config{Clock: now, Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	if err := engine.Load(rules.Set{Flow: []flow.Rule{warmingUp()}}); err != nil {
		return err
	}
	for second := range 13 {
		passed := offer(engine, now, 2000)
		fmt.Printf("second %2d %5d %s\n", second, passed, strings.Repeat("▇", passed/20))
	}
	return nil
}

func warmingUp() flow.Rule {
	return flow.Rule{
		Resource: "cache:fill",
		Limit:    1000,
		WarmUp:   flow.WarmUp{Period: 10 * time.Second, ColdFactor: 3},
	}
}

// offer makes calls, evenly over a second, and returns how many passed.
func offer(engine *core.Engine, c *clock.Virtual, calls int) (passed int) {
	for range calls {
		if guard, err := engine.Entry(context.Background(), "cache:fill"); err == nil {
			guard.Exit()
			passed++
		}
		c.Advance(time.Second / time.Duration(calls))
	}
	return passed
}
