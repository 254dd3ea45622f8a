package penstockprom_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	penstockprom "github.com/penstock-go/penstock/metrics/prometheus"
)

// The formats in which Prometheus scrapes.
const (
	textFormat     = "text/plain;version=0.0.4"
	protobufFormat = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)

// largeService returns a service with so many resources, whose response times are spread
// over a factor of 400. A rule guards each of them.
func largeService(tb testing.TB, resources int) service {
	s := newService(tb, core.Config{MaxResources: resources}, flow.Rule{Name: "each", Match: "*", Limit: 1000})
	tb.Cleanup(s.Close)
	for i := range resources {
		for step := 1; step <= 20; step++ {
			s.call(fmt.Sprintf("GET:/shop/v1/things/%05d", i), time.Duration(step*step)*time.Microsecond, nil)
		}
	}
	require.Len(tb, s.Snapshot().Resources, resources, "none is forgotten")
	return s
}

// scrapeOver returns a function that scrapes in a format, as Prometheus does, and returns
// how long the answer is in bytes.
func scrapeOver(tb testing.TB, collector prometheus.Collector, format string) func() int {
	registry := prometheus.NewRegistry()
	require.NoError(tb, registry.Register(collector))
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true})
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept", format)
	var body bytes.Buffer
	return func() int {
		body.Reset()
		answer := httptest.ResponseRecorder{Body: &body}
		handler.ServeHTTP(&answer, request)
		require.Equal(tb, http.StatusOK, answer.Code)
		n, err := io.Copy(io.Discard, answer.Body)
		require.NoError(tb, err)
		return int(n)
	}
}

// BenchmarkScrape measures a scrape of 10,000 resources, each with a rule: by the format, by
// how many of them have series of their own, and by what is exposed of response times.
func BenchmarkScrape(b *testing.B) {
	const resources = 10_000
	s := largeService(b, resources)
	for _, max := range []int{0, resources} {
		for name, histograms := range histogramsByName() {
			for format, accept := range map[string]string{"text": textFormat, "protobuf": protobufFormat} {
				b.Run(fmt.Sprintf("series of %d/%s/%s", max, name, format), func(b *testing.B) {
					scrape := scrapeOver(b, penstockprom.NewCollector(s.Engine, penstockprom.Options{
						MaxResources: max, Histograms: histograms,
					}), accept)
					size := scrape()
					b.ReportAllocs()
					for b.Loop() {
						scrape()
					}
					b.ReportMetric(float64(size)/1e6, "MB/scrape")
				})
			}
		}
	}
}

func histogramsByName() map[string]penstockprom.Histograms {
	return map[string]penstockprom.Histograms{
		"classic": penstockprom.ClassicHistograms,
		"native":  penstockprom.NativeHistograms,
		"none":    penstockprom.NoHistograms,
	}
}

// What a scrape with the default options costs is bounded, whatever the engine knows.
func TestScrapeOfTenThousandResourcesIsSmall(t *testing.T) {
	s := largeService(t, 10_000)
	for format, accept := range map[string]string{"text": textFormat, "protobuf": protobufFormat} {
		scrape := scrapeOver(t, penstockprom.NewCollector(s.Engine, penstockprom.Options{}), accept)
		assert.Less(t, scrape(), 10_000_000, format)
	}
}
