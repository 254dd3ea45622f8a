package penstockotel_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	penstockotel "github.com/penstock-go/penstock/metrics/otel"
	"github.com/penstock-go/penstock/rules"
)

// service is an engine on a clock that the test moves, and a reader of its metrics.
type service struct {
	*core.Engine
	clock  *clock.Virtual
	reader *sdk.ManualReader
}

// newService returns a service with the observer of the package. Its config may be changed.
func newService(t testing.TB, set rules.Set, options penstockotel.Options, config core.Config) *service {
	t.Helper()
	s := &service{clock: clock.NewVirtual(time.Unix(1000, 0)), reader: sdk.NewManualReader()}
	provider := sdk.NewMeterProvider(sdk.WithReader(s.reader))
	options.MeterProvider = provider
	observer, err := penstockotel.NewObserver(config.Observer, options)
	require.NoError(t, err)
	config.Clock, config.Observer, config.Logger = s.clock, observer, slog.New(slog.DiscardHandler)
	s.Engine = core.New(config)
	t.Cleanup(s.Close)
	require.NoError(t, s.Load(set))
	registration, err := penstockotel.Register(s.Engine, options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, registration.Unregister()) })
	return s
}

// calls makes calls that take no time, and returns how many passed.
func (s *service) calls(resource string, n int) (passed int) {
	for range n {
		if guard, err := s.Entry(context.Background(), resource); err == nil {
			guard.Exit()
			passed++
		}
	}
	return passed
}

// collect returns all metrics, each as "name{key=value …} value", sorted.
func (s *service) collect(t testing.TB) (lines []string) {
	t.Helper()
	var all metricdata.ResourceMetrics
	assert.NoError(t, s.reader.Collect(context.Background(), &all))
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			lines = append(lines, linesOf(m)...)
		}
	}
	slices.Sort(lines)
	return lines
}

func linesOf(m metricdata.Metrics) (lines []string) {
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		return pointLines(m.Name, data.DataPoints)
	case metricdata.Sum[float64]:
		return pointLines(m.Name, data.DataPoints)
	case metricdata.Gauge[int64]:
		return pointLines(m.Name, data.DataPoints)
	case metricdata.Gauge[float64]:
		return pointLines(m.Name, data.DataPoints)
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			lines = append(lines, fmt.Sprintf("%s%s count %d sum %v exemplars %d",
				m.Name, attributesOf(p.Attributes.ToSlice()), p.Count, p.Sum, len(p.Exemplars)))
		}
		return lines
	default:
		return []string{fmt.Sprintf("%s has unexpected data %T", m.Name, data)}
	}
}

func pointLines[N int64 | float64](name string, points []metricdata.DataPoint[N]) (lines []string) {
	for _, p := range points {
		line := fmt.Sprintf("%s%s %v", name, attributesOf(p.Attributes.ToSlice()), p.Value)
		if len(p.Exemplars) > 0 {
			line += fmt.Sprintf(" exemplars %d", len(p.Exemplars))
		}
		lines = append(lines, line)
	}
	return lines
}

func attributesOf(list []attribute.KeyValue) string {
	if len(list) == 0 {
		return ""
	}
	var texts []string
	for _, a := range list {
		texts = append(texts, strings.TrimPrefix(string(a.Key), "penstock.")+"="+fmt.Sprint(a.Value.AsInterface()))
	}
	return "{" + strings.Join(texts, " ") + "}"
}

// named returns the lines of one metric.
func named(lines []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.HasPrefix(l, prefix) })
}
