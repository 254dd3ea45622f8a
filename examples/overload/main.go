// Overload shows an HTTP service under three times the load that it can bear: first
// without protection, then with an adaptive rule, side by side. The service has 8 workers
// that take 20 ms for a request on average; its clients are of three priorities, wait 200
// ms for an answer, and come whether or not earlier ones were answered. Requests and time
// are real.
//
//	go run ./examples/overload
//	go run ./examples/overload -quick    # some seconds only
//
// It exits with status 1 if the rule did not help.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// document is the rule that protects the service. It knows nothing of the workers.
const document = `adaptive:
  - name: shed      # all inbound requests together: what the service cannot do in time
    inbound: true   # is refused early, the least important first
`

// noRules is a document without rules.
const noRules = "adaptive: []"

func main() {
	quick := flag.Bool("quick", false, "show some seconds rather than twenty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, loopback(), schedule(*quick)); err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

// plan is the load of each of the two parts of the show.
type plan struct {
	seconds    int // altogether
	overloaded int // the first second of the overload
	judged     int // the first second that the summary is about
}

func schedule(quick bool) plan {
	if quick {
		return plan{seconds: 5, overloaded: 1, judged: 3}
	}
	return plan{seconds: 10, overloaded: 2, judged: 4}
}

// The load before and in the overload, in multiples of the capacity.
const (
	normal   = 0.5
	overload = 3.0
)

func run(ctx context.Context, out io.Writer, network network, p plan) error {
	fmt.Fprintf(out, "A service with %d workers, about %v for a request: it can answer %.0f requests a second.\n",
		workers, meanService, capacity)
	fmt.Fprintf(out, "From second %d on, %.0f come. Clients give up after %v. The rule:\n\n%s\n", p.overloaded, overload*capacity, patience, document)
	without, err := show(ctx, out, network, p, noRules, nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "\nThe same load again, on a service that the rule protects:")
	with, err := show(ctx, out, network, p, document, without)
	if err != nil {
		return err
	}
	return summarize(out, without, with, p)
}

// show runs the load against a service under the rules, and prints a row each second,
// beside that of an earlier show if there is one.
func show(ctx context.Context, out io.Writer, network network, p plan, document string, beside []second) ([]second, error) {
	s, err := startService(network, document)
	if err != nil {
		return nil, err
	}
	defer s.close()
	l := newLoad(network, s.address())
	defer l.close()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go l.run(ctx, p)
	printHead(out, beside != nil)
	for i := range p.seconds {
		timer := time.NewTimer(time.Until(l.start.Add(time.Duration(i+1) * time.Second)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		l.note(i, s.state())
		printSecond(out, i, l.second(i), beside)
	}
	return l.all(), nil
}

// network is how clients reach the service.
type network struct {
	listen func() (net.Listener, error)
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

func loopback() network {
	return network{
		listen: func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") },
		dial:   new(net.Dialer).DialContext,
	}
}
