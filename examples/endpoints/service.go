package main

import (
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/signal"
)

// imitated is two processors: what computes takes one of them for its time and does nothing. So the
// figures do not depend on the machine.
type imitated chan struct{}

func newImitated() func(time.Duration) { return make(imitated, 2).compute }

func (p imitated) compute(d time.Duration) {
	p <- struct{}{}
	time.Sleep(d)
	<-p
}

// endpoint is one of the endpoints of the service, and the requests to it.
type endpoint struct {
	path     string
	rate     float64       // requests a second
	computes time.Duration // of a processor
	waits    time.Duration // for others, after that
	patience time.Duration // of its clients
	about    string
}

func endpoints() []endpoint {
	const ms, s = time.Millisecond, time.Second
	return []endpoint{
		{"/products", 150, 2 * ms, 0, 250 * ms, "computes"},
		{"/search", 50, 6 * ms, 0, 250 * ms, "computes"},
		{"/login", 20, 20 * ms, 0, 500 * ms, "computes for long"},
		{"/cart", 60, ms, 10 * ms, 250 * ms, "computes, asks a database"},
		{"/pay", 30, 0, 0, 3 * s, "asks a remote service, which becomes slow"},
		{"/reports", 120, 0, 0, 2 * s, "waits for a pool with a rule of its own, for 80 a second"},
		{"/chat", 8, 0, 2 * s, 5 * s, "polls for long"},
		{"/stream", 3, 0, 4 * s, 10 * s, "streams"},
		{"/export", 1, ms, 6 * s, 20 * s, "takes seconds"},
		{"/health", 10, 0, 0, 100 * ms, "a health check"},
	}
}

// service is the HTTP service.
type service struct {
	engine   *core.Engine
	server   *http.Server
	listener net.Listener
	compute  func(time.Duration)
	pay      atomic.Int64 // how long payments take
	closed   chan struct{}
}

// startService starts a service under the rules of a document.
func startService(network network, document string, compute func(time.Duration)) (*service, error) {
	set, err := rules.Parse("endpoints.yaml", []byte(document))
	if err != nil {
		return nil, err
	}
	quiet := slog.New(slog.DiscardHandler)
	s := &service{
		engine:  core.New(core.Config{Logger: quiet, Signals: signal.System()}),
		compute: compute, closed: make(chan struct{}),
	}
	if err := s.engine.Load(set); err != nil {
		return nil, err
	}
	if s.listener, err = network.listen(); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for _, e := range endpoints() {
		mux.HandleFunc("GET "+e.path, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, e) })
	}
	s.server = &http.Server{
		Handler: nethttp.Middleware(s.engine, nethttp.Options{})(mux), ReadHeaderTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	go func() { _ = s.server.Serve(s.listener) }()
	return s, nil
}

// serve does what an endpoint does. Like most handlers it computes also if its client has left.
func (s *service) serve(w http.ResponseWriter, r *http.Request, e endpoint) {
	if e.computes > 0 {
		s.compute(e.computes)
	}
	switch e.path {
	case "/pay":
		s.wait(time.Duration(s.pay.Load()))
	case "/reports":
		guard, err := s.engine.Entry(r.Context(), "pool")
		if err != nil {
			nethttp.WriteProblem(w, err)
			return
		}
		defer guard.Exit()
		s.wait(50 * time.Millisecond)
	case "/stream":
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
	}
	s.wait(e.waits)
	w.WriteHeader(http.StatusOK)
}

func (s *service) address() string { return s.listener.Addr().String() }

func (s *service) setPay(d time.Duration) { s.pay.Store(int64(d)) }

// wait waits for something else, or for the end of the program.
func (s *service) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.closed:
	}
}

// close ends the service.
func (s *service) close() {
	close(s.closed)
	_ = s.server.Close()
	s.engine.Close()
}
