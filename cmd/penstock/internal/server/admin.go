package server

import (
	"net"
	"net/http"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/penstock-go/penstock/inspect"
	penstockprom "github.com/penstock-go/penstock/metrics/prometheus"
	"github.com/penstock-go/penstock/serve"
)

// register registers the metrics of the server.
func (s *server) register() error {
	for _, collector := range []prometheus.Collector{
		penstockprom.NewCollector(s.Engine, penstockprom.Options{}),
		s.requests.total,
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "penstock_serve_shed_total",
			Help: "Requests that were answered UNAVAILABLE, or 503 over HTTP, because too many were under way.",
		}, func() float64 { return float64(s.underWay.shed.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "penstock_serve_requests_bound",
			Help: "Requests that may be under way: fewer than --max-requests while the server has more to do than its processors can.",
		}, func() float64 { return float64(s.underWay.backlog.bound.Load()) }),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := s.registry.Register(collector); err != nil {
			return err
		}
	}
	return s.registerQuotas()
}

// registerQuotas registers the metrics of quotas, if they are served.
func (s *server) registerQuotas() error {
	if s.quotas == nil {
		return nil
	}
	gauge := func(name, help string, value func(serve.RLQSStatus) int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return float64(value(s.quotas.Status())) })
	}
	for _, collector := range []prometheus.Collector{
		gauge("penstock_serve_quota_streams", "Streams of data planes.", func(is serve.RLQSStatus) int { return is.Streams }),
		gauge("penstock_serve_quota_buckets", "Buckets that data planes report.", func(is serve.RLQSStatus) int { return is.Buckets }),
		gauge("penstock_serve_quota_shares", "Buckets of all data planes together.", func(is serve.RLQSStatus) int { return is.Shares }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "penstock_serve_quota_unassigned_total", Help: "Usages of buckets beyond a bound, which get no assignment.",
		}, func() float64 { return float64(s.quotas.Status().Unassigned) }),
	} {
		if err := s.registry.Register(collector); err != nil {
			return err
		}
	}
	return nil
}

// adminHandler is for operators: what the engine holds, metrics, and the probes; with a token also what they
// may do.
func (s *server) adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{Registry: s.registry}))
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("/", inspect.Handler(s.Engine, s.adminHosts())) // among others "ready"
	if s.ControlToken != "" {
		mux.Handle("/control", inspect.ControlHandler(s.Engine, inspect.Options{Tokens: []string{s.ControlToken}}))
	}
	return mux
}

// adminHosts has what the engine holds be told on loopback only to requests for an address or localhost: there
// nobody needs another name but the owner of a page that wants to read it in somebody's browser.
func (s *server) adminHosts() inspect.Options {
	host, _, _ := net.SplitHostPort(s.Admin)
	if address, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !address.IsLoopback()) {
		return inspect.Options{}
	}
	return inspect.Options{Hosts: []string{}}
}
