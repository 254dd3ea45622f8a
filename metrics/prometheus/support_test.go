package penstockprom_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// service is an engine with a clock that the test advances.
type service struct {
	*core.Engine
	clock *clock.Virtual
}

func newService(t require.TestingT, config core.Config, limits ...flow.Rule) service {
	s := service{clock: clock.NewVirtual(time.Unix(1000, 0))}
	config.Clock = s.clock
	config.Logger = slog.New(slog.DiscardHandler)
	s.Engine = core.New(config)
	s.load(t, limits...)
	return s
}

func (s service) load(t require.TestingT, limits ...flow.Rule) {
	require.NoError(t, s.Load(rules.Set{Flow: limits}))
}

// call makes a call that takes the given time, and fails if err is not nil. It
// returns whether it passed.
func (s service) call(resource string, took time.Duration, err error) bool {
	guard, refusal := s.Entry(context.Background(), resource)
	if refusal != nil {
		return false
	}
	defer guard.Exit()
	guard.Fail(err)
	s.clock.Advance(took)
	return true
}

// calls makes n calls that take no time.
func (s service) calls(resource string, n int) {
	for range n {
		s.call(resource, 0, nil)
	}
}

// series is the result of a scrape: values by name and labels in exposition format,
// such as `penstock_passed_total{resource="orders"}`.
type series map[string]float64

// scrape gathers what a collector exposes, which must not change meanwhile.
func scrape(t assert.TestingT, collector prometheus.Collector) series {
	families := gather(t, collector)
	s := seriesOf(families)
	if gatherer, ok := collector.(prometheus.Gatherer); ok {
		gathered, err := gatherer.Gather()
		assert.NoError(t, err)
		assert.Equal(t, s, seriesOf(gathered), "what a registry gathers, and what the collector does")
		assert.Equal(t, headings(families), headings(gathered))
	}
	return s
}

// gather returns what a registry gathers from a collector.
func gather(t assert.TestingT, collector prometheus.Collector) []*dto.MetricFamily {
	registry := prometheus.NewPedanticRegistry()
	assert.NoError(t, registry.Register(collector))
	families, err := registry.Gather()
	assert.NoError(t, err)
	return families
}

func seriesOf(families []*dto.MetricFamily) series {
	s := make(series)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			s.add(family.GetName(), metric)
		}
	}
	return s
}

// headings returns what families say of themselves, in their order.
func headings(families []*dto.MetricFamily) (list []string) {
	for _, f := range families {
		list = append(list, fmt.Sprint(f.GetName(), " ", f.GetType(), " ", f.GetHelp()))
	}
	return list
}

func (s series) add(name string, m *dto.Metric) {
	switch {
	case m.GetCounter() != nil:
		s[name+labels(m)] = m.GetCounter().GetValue()
	case m.GetGauge() != nil:
		s[name+labels(m)] = m.GetGauge().GetValue()
	case m.GetSummary() != nil:
		s[name+"_count"+labels(m)] = float64(m.GetSummary().GetSampleCount())
		s[name+"_sum"+labels(m)] = m.GetSummary().GetSampleSum()
	case m.GetHistogram() != nil:
		s[name+"_count"+labels(m)] = float64(m.GetHistogram().GetSampleCount())
		s[name+"_sum"+labels(m)] = m.GetHistogram().GetSampleSum()
		for _, b := range m.GetHistogram().GetBucket() {
			s[fmt.Sprintf("%s_bucket%s le=%012.9f", name, labels(m), b.GetUpperBound())] = float64(b.GetCumulativeCount())
		}
		for index, count := range nativeBuckets(m.GetHistogram()) {
			s[fmt.Sprintf("%s_native_bucket%s index=%d", name, labels(m), index)] = count
		}
	}
}

// zeroBucket is the index under which nativeBuckets has the bucket of zeros.
const zeroBucket = math.MinInt32

// nativeBuckets returns how many are in each bucket of a native histogram; none if it is a
// classic one.
func nativeBuckets(h *dto.Histogram) map[int32]float64 {
	if h.Schema == nil {
		return nil
	}
	buckets := map[int32]float64{zeroBucket: float64(h.GetZeroCount())}
	index, count, deltas := int32(0), int64(0), h.GetPositiveDelta()
	for _, span := range h.GetPositiveSpan() {
		index += span.GetOffset()
		for range span.GetLength() {
			count += deltas[0]
			buckets[index] = float64(count)
			deltas = deltas[1:]
			index++
		}
	}
	return buckets
}

func labels(m *dto.Metric) string {
	var pairs []string
	for _, l := range m.GetLabel() {
		pairs = append(pairs, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	if len(pairs) == 0 {
		return ""
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

// of returns the series of a name in the order of their labels.
func (s series) of(name string) (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if strings.HasPrefix(key, name+"{") {
			keys = append(keys, key)
		}
	}
	return keys
}

// sum adds up the series of a name.
func (s series) sum(name string) (sum float64) {
	for _, key := range s.of(name) {
		sum += s[key]
	}
	return sum
}

func passed(resource string) string {
	return fmt.Sprintf("penstock_passed_total{resource=%q}", resource)
}
