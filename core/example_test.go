package core_test

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// An engine on a virtual clock, as a test of one's own rules would use it.
func ExampleEngine() {
	now := clock.NewVirtual(time.Unix(0, 0))
	engine := core.New(core.Config{Clock: now, Logger: quiet})
	defer engine.Close()
	_ = engine.Load(rules.Set{Flow: []flow.Rule{{Resource: "r", Limit: 100}}})

	for range 2 {
		passed := 0
		for range 150 {
			if guard, err := engine.Entry(context.Background(), "r"); err == nil {
				guard.Exit()
				passed++
			}
		}
		fmt.Println(passed, "of 150 passed")
		now.Advance(time.Second)
	}
	// Output:
	// 100 of 150 passed
	// 100 of 150 passed
}

func ExampleCall() {
	engine := core.New(core.Config{Logger: quiet})
	defer engine.Close()
	answer, err := core.Call(context.Background(), engine, "question", func(context.Context) (int, error) {
		return 42, nil
	})
	fmt.Println(answer, err)
	// Output: 42 <nil>
}

func ExampleResource_Minute() {
	now := clock.NewVirtual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	engine := core.New(core.Config{Clock: now, Logger: quiet})
	defer engine.Close()
	guard, _ := engine.Entry(context.Background(), "r")
	now.Advance(30 * time.Millisecond)
	guard.Exit()

	minute := engine.Resource("r").Minute()
	present := minute[len(minute)-1]
	fmt.Println(present.Start.Time().Format(time.TimeOnly), present.Passed, present.MeanResponseTime())
	// Output: 03:04:05 1 30ms
}
