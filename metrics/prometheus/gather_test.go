package penstockprom_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	penstockprom "github.com/penstock-go/penstock/metrics/prometheus"
)

// That Gather returns what a registry does is checked by scrape, in all tests.

func TestGatherWithInvalidConstLabelsReturnsAnError(t *testing.T) {
	t.Parallel()
	s := newService(t, core.Config{})
	defer s.Close()
	for _, labels := range []prometheus.Labels{{"not valid\xff": "x"}, {"resource": "taken"}} {
		collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{ConstLabels: labels})
		families, err := collector.Gather()
		require.Error(t, err)
		assert.Empty(t, families)
		require.Error(t, prometheus.NewRegistry().Register(collector), "nor can it be registered")
	}
}

// A gatherer beside a registry gives one answer with the metrics of both. Scrapes at the same
// time do not disturb each other.
func TestGatherBesideARegistryIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	s := newService(t, core.Config{})
	defer s.Close()
	for i := range 50 {
		s.calls(fmt.Sprint("resource", i), i+1)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector())
	handler := promhttp.HandlerForTransactional(prometheus.NewMultiTRegistry(
		prometheus.ToTransactionalGatherer(registry),
		prometheus.ToTransactionalGatherer(penstockprom.NewCollector(s.Engine, penstockprom.Options{})),
	), promhttp.HandlerOpts{})
	var scraping sync.WaitGroup
	for range 4 {
		scraping.Go(func() {
			page := httptest.NewRecorder()
			handler.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			assert.Equal(t, http.StatusOK, page.Code)
			assert.Contains(t, page.Body.String(), "\n"+`penstock_passed_total{resource="resource49"} 50`+"\n")
			assert.Equal(t, 50, strings.Count(page.Body.String(), "\npenstock_passed_total{"))
			assert.Contains(t, page.Body.String(), "\ngo_goroutines ")
		})
	}
	s.calls("resource0", 100)
	scraping.Wait()
}
