// Endpoints shows an HTTP service as they are: ten endpoints that compute, ask others, wait for a
// pool, stream, or take seconds, under one adaptive rule. The same requests come three times, with
// real connections and real time: without a rule, with a fixed limit, and with the rule that finds
// the limit itself. In each run the load is first below what the service can do, then payments
// become slow, and then twice as much computing is asked for as there is.
//
//	go run ./examples/endpoints           # a minute and a half
//	go run ./examples/endpoints -quick    # half a minute
//	go run ./examples/endpoints -compute  # the service really computes, in a process of its own on one processor
//
// Without -compute it imitates two processors, so that the figures hardly depend on the machine.
//
// It prints which share of the requests to each endpoint was answered in time. It exits with status
// 1 if the rule refused healthy endpoints anything while nothing was short.
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

// pool is the rule that the pool of the reports has in any case.
const pool = `
isolation: [{resource: "pool", limit: 4, maxWait: 500ms, maxQueue: 40}]`

// protections are what the service is protected by, besides.
func protections() []protection {
	return []protection{
		{"none", `adaptive: []` + pool},
		{"fixed limit 40", `adaptive: [{name: shed, inbound: true, strategy: threshold, concurrency: 40}]` + pool},
		{"adaptive", `adaptive: [{name: shed, inbound: true}]` + pool},
	}
}

type protection struct{ name, document string }

// phase is a part of a run.
type phase struct {
	name      string
	seconds   float64
	judged    float64       // from which second on it is in the table
	computing float64       // how many times the usual requests to what computes come
	pay       time.Duration // how long payments take
}

func phases(scale float64) []phase {
	const usual, slow = 20 * time.Millisecond, time.Second
	return []phase{
		{"below capacity", 10 * scale, 3 * scale, 1, usual},
		{"payments take 1 s", 8 * scale, 0, 1, slow},
		{"2 × the processor", 10 * scale, 2 * scale, 4, usual},
	}
}

func main() {
	quick := flag.Bool("quick", false, "show a third of it")
	compute := flag.Bool("compute", false, "compute rather than imitate it, in a process of its own on one processor, with half of the requests")
	document := flag.String("serve", "", "be that process, under these `rules`: -compute starts it")
	flag.Parse()
	if *document != "" {
		if err := serveProcess(*document); err != nil {
			fmt.Fprintln(os.Stderr, "endpoints:", err)
			os.Exit(1)
		}
		return
	}
	scale := 1.0
	if *quick {
		scale = 1. / 3
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	on := imitating(loopback())
	if *compute {
		on = computing()
	}
	if err := run(ctx, os.Stdout, on, phases(scale)); err != nil {
		fmt.Fprintln(os.Stderr, "endpoints:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

func run(ctx context.Context, out io.Writer, on stage, phases []phase) error {
	var results []*result
	for _, p := range protections() {
		fmt.Fprintf(out, "running: %s\n", p.name)
		r, err := show(ctx, on, p, phases)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	return report(out, phases, results)
}

// show runs the load against a service under a protection.
func show(ctx context.Context, on stage, p protection, phases []phase) (*result, error) {
	s, err := on.start(ctx, p.document)
	if err != nil {
		return nil, err
	}
	defer s.close()
	r := newResult(len(phases))
	l := newLoad(on.network, s.address(), r)
	l.share = on.requests
	defer l.close()
	for i, phase := range phases {
		s.setPay(phase.pay)
		if err := l.run(ctx, i, phase); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// stage is where the show runs.
type stage struct {
	network  network
	requests float64 // which share of the requests come
	start    func(ctx context.Context, document string) (running, error)
}

// running is a service under the rules of a document.
type running interface {
	address() string
	setPay(time.Duration) // how long payments take
	close()
}

// imitating is a service in this process that imitates two processors.
func imitating(n network) stage {
	return stage{n, 1, func(_ context.Context, document string) (running, error) {
		return startService(n, document, newImitated())
	}}
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
