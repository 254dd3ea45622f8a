// Soak runs real engines in real time, with every kind of rule, and with everything
// at once that can happen: rules that change, resources that are created and evicted,
// calls that are cancelled, guards that are exited twice, functions that panic,
// broken documents, engines that are closed. It counts by itself which calls passed
// when, checks that against the rules, and exits with status 1 if a limit or a
// statistic was wrong. It also simulates random steps of the load on a service under an
// adaptive rule, ten minutes of them at a time.
//
//	go run ./soak -for 10m
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"
)

func main() {
	duration := flag.Duration("for", 10*time.Minute, "how long to run")
	goroutines := flag.Int("goroutines", 64, "how many goroutines make calls")
	seed := flag.Uint64("seed", rand.Uint64(), "of the random numbers; a run also depends on the scheduler") //nolint:gosec // guards no secret
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *duration, *goroutines, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

// run runs the soak test for the duration, or until ctx ends. It returns an error if
// there are findings.
func run(ctx context.Context, out io.Writer, duration time.Duration, goroutines int, seed uint64) error {
	before := runtime.NumGoroutine()
	s, err := newSoak(out, duration, goroutines, seed)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "soak: %v with %d goroutines on %d processors, seed %d\n", duration, goroutines, runtime.GOMAXPROCS(0), seed)
	s.run(ctx)
	s.close()
	if left := goroutinesAbove(before); left > 0 {
		s.findings.add("%d goroutines are left", left)
		_ = pprof.Lookup("goroutine").WriteTo(out, 1)
	}
	s.table(out)
	return s.findings.err()
}

// goroutinesAbove waits for goroutines to end and returns how many do not.
func goroutinesAbove(before int) (left int) {
	for range 6000 { // two minutes
		if left = runtime.NumGoroutine() - before; left <= 0 {
			return 0
		}
		time.Sleep(20 * time.Millisecond)
	}
	return left
}
