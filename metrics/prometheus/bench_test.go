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
	dto "github.com/prometheus/client_model/go"
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
func scrapeOver(tb testing.TB, gatherer prometheus.Gatherer, format string) func() int {
	handler := promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{DisableCompression: true})
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

func registryOf(tb testing.TB, collector prometheus.Collector) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	require.NoError(tb, registry.Register(collector))
	return registry
}

// constants is a collector of metrics that never change, the least that a registry can have.
type constants []prometheus.Metric

func (constants) Describe(chan<- *prometheus.Desc) {}

func (c constants) Collect(metrics chan<- prometheus.Metric) {
	for _, m := range c {
		metrics <- m
	}
}

// constantsLike returns as many constants as there are series, with the same names and values.
func constantsLike(families []*dto.MetricFamily) (c constants) {
	for _, f := range families {
		var names []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			names = append(names, l.GetName())
		}
		desc := prometheus.NewDesc(f.GetName(), f.GetHelp(), names, nil)
		for _, m := range f.GetMetric() {
			c = append(c, constantLike(desc, m))
		}
	}
	return c
}

func constantLike(desc *prometheus.Desc, m *dto.Metric) prometheus.Metric {
	var values []string
	for _, l := range m.GetLabel() {
		values = append(values, l.GetValue())
	}
	switch h, s := m.GetHistogram(), m.GetSummary(); {
	case h != nil:
		buckets := make(map[float64]uint64)
		for _, b := range h.GetBucket() {
			buckets[b.GetUpperBound()] = b.GetCumulativeCount()
		}
		return prometheus.MustNewConstHistogram(desc, h.GetSampleCount(), h.GetSampleSum(), buckets, values...)
	case s != nil:
		return prometheus.MustNewConstSummary(desc, s.GetSampleCount(), s.GetSampleSum(), nil, values...)
	case m.GetCounter() != nil:
		return prometheus.MustNewConstMetric(desc, prometheus.CounterValue, m.GetCounter().GetValue(), values...)
	}
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, m.GetGauge().GetValue(), values...)
}

// BenchmarkScrape measures a scrape of 10,000 resources, each with a rule: by how many of them
// have series of their own, by what is exposed of response times, by the format, and by who
// gathers: the collector, a registry with the collector, or a registry with constants.
// Constants have no native histograms.
func BenchmarkScrape(b *testing.B) {
	const resources = 10_000
	s := largeService(b, resources)
	for _, most := range []int{0, resources} {
		for _, histograms := range []string{"classic", "native", "none"} {
			collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{
				MaxResources: most, Histograms: histogramsByName()[histograms],
			})
			gatherers := map[string]prometheus.Gatherer{"collector": collector, "registry": registryOf(b, collector)}
			if histograms != "native" {
				families, err := collector.Gather()
				require.NoError(b, err)
				gatherers["constants"] = registryOf(b, constantsLike(families))
			}
			for format, accept := range map[string]string{"text": textFormat, "protobuf": protobufFormat} {
				for by, gatherer := range gatherers {
					b.Run(fmt.Sprintf("series of %d/%s/%s/%s", most, histograms, format, by), func(b *testing.B) {
						measureScrape(b, scrapeOver(b, gatherer, accept))
					})
				}
			}
		}
	}
}

func measureScrape(b *testing.B, scrape func() int) {
	size := scrape()
	b.ReportAllocs()
	for b.Loop() {
		scrape()
	}
	b.ReportMetric(float64(size)/1e6, "MB/scrape")
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
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	s := largeService(t, 10_000)
	for format, accept := range map[string]string{"text": textFormat, "protobuf": protobufFormat} {
		scrape := scrapeOver(t, registryOf(t, penstockprom.NewCollector(s.Engine, penstockprom.Options{})), accept)
		assert.Less(t, scrape(), 10_000_000, format)
	}
}
