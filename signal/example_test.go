package signal_test

import (
	"context"
	"fmt"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/signal"
)

// A program adds a signal of its own to those of the system.
func ExampleOverride() {
	inUse, size := 30, 40 // of a pool of connections
	source := signal.Override(signal.System(), signal.Map{
		"connections": func(context.Context) (float64, error) { return float64(inUse) / float64(size), nil },
	})
	engine := core.New(core.Config{Signals: source})
	defer engine.Close()

	fmt.Println(source.Read(context.Background(), "connections"))
	// Output: 0.75 <nil>
}

// In a test, signals are what the test wants.
func ExampleMap() {
	source := signal.Map{rule.SignalCPU: func(context.Context) (float64, error) { return 0.9, nil }}
	fmt.Println(source.Read(context.Background(), rule.SignalCPU))
	fmt.Println(source.Read(context.Background(), rule.SignalMemory))
	// Output:
	// 0.9 <nil>
	// 0 signal: "memory": there is no such signal; known are cpu
}
