package core_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// A handler leaves out what it can while the places of its pool are taken.
func ExampleGuard_Load() {
	virtual := clock.NewVirtual(time.Unix(1_700_000_000, 0))
	engine := core.New(core.Config{Clock: virtual, Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	_ = engine.Load(rules.Set{Isolation: []isolation.Rule{{Resource: "shop:product", Limit: 2}}})

	handle := func() {
		guard, err := engine.Entry(context.Background(), "shop:product")
		if err != nil {
			fmt.Println(err)
			return
		}
		defer guard.Exit()
		level := guard.Load()
		fmt.Println(level, "recommendations:", level.Begins(rule.PrioritySheddable))
	}
	handle()
	other, _ := engine.Entry(context.Background(), "shop:product")
	defer other.Exit()
	for range 3 {
		virtual.Advance(time.Second)
		handle()
	}
	// Output:
	// none recommendations: true
	// none recommendations: true
	// light recommendations: true
	// moderate recommendations: false
}
