package main

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// What the service can do. The rule does not know it.
const (
	workers     = 8
	meanService = 20 * time.Millisecond
	capacity    = float64(workers) / 0.020 // requests a second
)

// service is an HTTP service whose requests need one of a few workers, such as
// connections of a database.
type service struct {
	engine   *core.Engine
	server   *http.Server
	listener net.Listener
	workers  chan struct{}
	closed   chan struct{}
}

// startService starts a service under the rules of a document.
func startService(network network, document string) (*service, error) {
	set, err := rules.Parse("overload.yaml", []byte(document))
	if err != nil {
		return nil, err
	}
	quiet := slog.New(slog.DiscardHandler) // the log says what this program prints
	s := &service{
		engine:  core.New(core.Config{Logger: quiet}),
		workers: make(chan struct{}, workers),
		closed:  make(chan struct{}),
	}
	if err := s.engine.Load(set); err != nil {
		return nil, err
	}
	if s.listener, err = network.listen(); err != nil {
		return nil, err
	}
	s.server = &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	go func() {
		if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("the service has ended", "error", err)
		}
	}()
	return s, nil
}

// handler trusts callers on this machine with the priorities of their requests.
func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders", s.orders)
	return nethttp.Middleware(s.engine, nethttp.Options{
		PriorityHeader: priority.Field,
		Clients: clientip.Options{PriorityCallers: []priority.Callers{{
			From: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Max: rule.PriorityHigh,
		}}},
	})(mux)
}

// orders waits for a worker and works. Like most handlers it does not notice that its
// client has left.
func (s *service) orders(w http.ResponseWriter, _ *http.Request) {
	select {
	case s.workers <- struct{}{}:
		defer func() { <-s.workers }()
		time.Sleep(time.Duration(rand.ExpFloat64() * float64(meanService))) //nolint:gosec // guards no secret
		w.WriteHeader(http.StatusOK)
	case <-s.closed: // this program ends
	}
}

func (s *service) address() string { return s.listener.Addr().String() }

// ruleState is what the rule shows.
type ruleState struct {
	limit, inFlight float64
	shed            map[string]float64 // so far, by priority
}

// state returns what the rule shows now; nil if there is none.
func (s *service) state() *ruleState {
	for _, of := range s.engine.RuleStates(func(rule.Rule) bool { return true }) {
		state := ruleState{shed: make(map[string]float64)}
		for i, gauge := range of.Rule.Type().Gauges() {
			switch gauge.Name {
			case "limit":
				state.limit = of.Gauges[i]
			case "in_flight":
				state.inFlight = of.Gauges[i]
			case "shed":
				state.shed[gauge.LabelValue] = of.Gauges[i]
			}
		}
		return &state
	}
	return nil
}

// close ends the service, and waits until no worker works.
func (s *service) close() {
	close(s.closed)
	_ = s.server.Close()
	for range cap(s.workers) {
		s.workers <- struct{}{}
	}
	s.engine.Close()
}
