// Overload runs reference scenarios of overload in simulations, and compares what
// protections of a service reach with what is wanted.
//
//	go run ./soak/overload                                 # every scenario, under the latency strategy
//	go run ./soak/overload -run 'step' -seeds 5            # some of them, with more seeds
//	go run ./soak/overload -protect fixed,latency          # several protections side by side
//	go run ./soak/overload -rules my-rules.yaml            # rules of your own on the resource "work"
//	go run ./soak/overload -run A1 -v                      # the goal A1, and what happened in each second
//	go run ./soak/overload -scenes my-scenes               # scenes of your own: a file or a folder
//
// The exit status is 1 if a goal is missed.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/penstock-go/penstock/internal/overload"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	debug.SetGCPercent(400) // simulations make much garbage and keep little
	if err := overload.Run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}
