// Signals prints what the signals of the system show, once a second: five times idle, and
// five times while the program uses all CPU time that it gets and makes garbage. Run it in a
// container with limits to see what rules there read.
//
//	go run ./examples/signals
package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/signal"
)

func main() {
	names := []rule.Signal{
		rule.SignalCPU, rule.SignalThrottled, rule.SignalLoad, rule.SignalMemory, rule.SignalSchedulerDelay, rule.SignalGC,
	}
	source := signal.System()
	for _, name := range names {
		fmt.Printf("%16s", name)
		// The first reading has nothing to compare with.
		if _, err := source.Read(context.Background(), name); err != nil {
			defer fmt.Println(err)
		}
	}
	fmt.Println()
	for second := range 10 {
		if second == 5 {
			fmt.Println("and now busy")
			for range runtime.NumCPU() {
				go work()
			}
		}
		time.Sleep(time.Second)
		printLine(source, names)
	}
}

// printLine prints what signals show now.
func printLine(source signal.Source, names []rule.Signal) {
	for _, name := range names {
		if value, err := source.Read(context.Background(), name); err == nil {
			fmt.Printf("%16.3g", value)
		} else {
			fmt.Printf("%16s", "-")
		}
	}
	fmt.Println()
}

// work makes garbage for ever.
func work() {
	for text := ""; ; text += "penstock" {
		if len(text) > 1<<10 {
			text = strings.Clone(text[:8])
		}
	}
}
