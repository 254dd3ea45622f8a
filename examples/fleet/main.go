// Fleet shows four processes that share one limit of 100 calls a second through a Redis
// server, while three times as many calls come. It counts by the second what each process
// lets pass. In the middle the server is killed, and is started again with nothing in it.
//
//	go run ./examples/fleet
//	go run ./examples/fleet -quick    # half as long
//
// It uses redis-server or valkey-server if one is on the PATH. Without, a small server in
// this process stands in for it, so that nothing needs to be installed.
//
// It exits with status 1 if the processes together let more calls pass than the limit
// promises, or none.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// document is the rule. Each process has it, and knows nothing of the others.
const document = `flow:
  - name: partner-quota
    resource: partners:call
    limit: 100      # a second, of all processes together
    scope: fleet
`

const (
	instances = 4
	limit     = 100.0 // of the document
	overload  = 3.0   // calls that come, in multiples of the limit
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := program(ctx, os.Args[1:])
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

// program is the show, or one of the instances that it starts.
func program(ctx context.Context, args []string) error {
	if len(args) == 3 && args[0] == roleInstance {
		// Ctrl-C reaches all processes: this one ends when its parent does.
		signal.Ignore(os.Interrupt)
		return serveInstance(os.Stdin, os.Stdout, args[1], args[2])
	}
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "take half the time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return run(ctx, os.Stdout, schedule(*quick))
}

// plan says in which seconds things happen.
type plan struct {
	seconds   int // altogether
	killed    int // when the server is killed
	restarted int // when it is started again
}

func schedule(quick bool) plan {
	if quick {
		return plan{seconds: 6, killed: 2, restarted: 4}
	}
	return plan{seconds: 12, killed: 5, restarted: 8}
}

// run shows it all.
func run(ctx context.Context, out io.Writer, p plan) error {
	server, err := startServer(ctx)
	if err != nil {
		return err
	}
	defer server.stop()
	fmt.Fprintf(out, "%d processes share one limit through %s. %.0f calls a second come, evenly spread. The rule:\n\n%s\n",
		instances, server.about(), overload*limit, document)

	f, err := startFleet(ctx, server.address())
	if err != nil {
		return err
	}
	defer f.stop()
	if err := show(ctx, out, p, server, f); err != nil {
		return err
	}
	f.stop()
	return summarize(out, p, f.counts)
}

// show has the calls come, prints a line each second, and disturbs the server.
func show(ctx context.Context, out io.Writer, p plan, server server, f *processes) error {
	start := time.Now().Add(200 * time.Millisecond)
	f.begin(start)
	printHead(out)
	for i := range p.seconds {
		if err := waitUntil(ctx, start.Add(time.Duration(i)*time.Second)); err != nil {
			return err
		}
		switch i {
		case p.killed:
			fmt.Fprintln(out, "         the server is killed")
			server.kill()
		case p.restarted:
			fmt.Fprintln(out, "         the server is started again, empty")
			if err := server.restart(ctx); err != nil {
				return err
			}
		}
		if err := waitUntil(ctx, start.Add(time.Duration(i+1)*time.Second)); err != nil {
			return err
		}
		// Each process tells of its calls by the next one, at the latest.
		if err := waitUntil(ctx, time.Now().Add(100*time.Millisecond)); err != nil {
			return err
		}
		printSecond(out, i, f.counts.second(i))
		f.printLog(out)
		if i == p.killed-1 || i == p.killed {
			if err := f.printStatus(ctx, out, anyState); err != nil {
				return err
			}
		}
	}
	err := f.printStatus(ctx, out, stateConnected)
	f.printLog(out)
	return err
}

func waitUntil(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
