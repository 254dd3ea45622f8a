package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
	systemsignal "github.com/penstock-go/penstock/signal"
)

// The paths of the service: the same work without the rules and under them, and the
// processor time that the process has used so far, in seconds.
const (
	pathFree    = "/free"
	pathGuarded = "/guarded"
	pathCPU     = "/cpu"

	resource = "GET:" + pathGuarded
)

const roleServe = "serve"

// serveProcess is the process of a service. It begins when a line comes from the standard
// input, prints its address, and ends with that input.
func serveProcess(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(roleServe, flag.ContinueOnError)
	name := flags.String("service", "", "")
	document := flags.String("rules", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	of, ok := serviceNamed(*name)
	if !ok {
		return fmt.Errorf("there is no service %q", *name)
	}
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	engine, err := engineUnder(*document)
	if err != nil {
		return err
	}
	defer engine.Close()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	server := &http.Server{Handler: handlerOf(of, engine), ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func engineUnder(document string) (*core.Engine, error) {
	set, err := rules.Parse("overload.yaml", []byte(document))
	if err != nil {
		return nil, err
	}
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler), Signals: systemsignal.System()})
	return engine, engine.Load(set)
}

// handlerOf returns the handler of a service.
func handlerOf(of service, engine *core.Engine) http.Handler {
	work := workOf(of)
	serve := func(http.ResponseWriter, *http.Request) { work() }
	guarded := http.NewServeMux()
	guarded.HandleFunc("GET "+pathGuarded, serve)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathFree, serve)
	mux.HandleFunc("GET "+pathCPU, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, processorTime().Seconds()) })
	mux.Handle("/", nethttp.Middleware(engine, nethttp.Options{})(guarded))
	return mux
}

// workOf returns what the service does for a request.
func workOf(of service) func() {
	times := newServiceTimes()
	if of.compute {
		rate := calibrate()
		return func() { runtime.KeepAlive(compute(uint64(times.next().Seconds() * rate))) }
	}
	workers := make(chan struct{}, of.workers)
	return func() {
		workers <- struct{}{}
		defer func() { <-workers }()
		time.Sleep(times.next())
	}
}

// serviceTimes are exponential service times with the mean meanService. They are quantiles
// in random order, so that the mean of some hundreds of them is that mean.
type serviceTimes struct {
	mu    sync.Mutex
	times []time.Duration
	used  int
}

func newServiceTimes() *serviceTimes {
	const count = 500
	s := &serviceTimes{used: count}
	sum := 0.0
	for i := range count {
		sum -= math.Log((float64(i) + 0.5) / count)
	}
	for i := range count {
		quantile := -math.Log((float64(i) + 0.5) / count)
		s.times = append(s.times, time.Duration(quantile*count/sum*float64(meanService)))
	}
	return s
}

func (s *serviceTimes) next() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == len(s.times) {
		//nolint:gosec // guards no secret
		rand.Shuffle(len(s.times), func(i, j int) { s.times[i], s.times[j] = s.times[j], s.times[i] })
		s.used = 0
	}
	s.used++
	return s.times[s.used-1]
}

// calibrate returns how many steps of compute a processor takes in a second.
func calibrate() float64 {
	const steps = 1 << 20
	shortest := time.Hour
	for range 20 { // the quickest, for other processes may take the processor meanwhile
		start := time.Now()
		runtime.KeepAlive(compute(steps))
		shortest = min(shortest, time.Since(start))
	}
	return steps / shortest.Seconds()
}

// compute keeps a processor busy for so many steps.
func compute(steps uint64) uint64 {
	x := steps
	for range steps {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}
