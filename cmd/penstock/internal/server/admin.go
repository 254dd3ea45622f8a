package server

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/penstock-go/penstock/inspect"
	penstockprom "github.com/penstock-go/penstock/metrics/prometheus"
)

// register registers the metrics of the server.
func (s *server) register() error {
	for _, collector := range []prometheus.Collector{
		penstockprom.NewCollector(s.Engine, penstockprom.Options{}),
		s.requests.total,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := s.registry.Register(collector); err != nil {
			return err
		}
	}
	return nil
}

// adminHandler is for operators: what the engine holds, metrics, and the probes.
func (s *server) adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{Registry: s.registry}))
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("/", inspect.Handler(s.Engine)) // among others "ready"
	return mux
}
