package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	penstockotel "github.com/penstock-go/penstock/metrics/otel"
	"github.com/penstock-go/penstock/rules"
)

// collector receives what exporters send over OTLP, and keeps it as lines of text.
type collector struct {
	t   *testing.T
	url string

	mu      sync.Mutex // guards what follows
	exports [][]string // of metrics
	spans   []string
	traces  map[string]string // by the name of the span
}

func newCollector(t *testing.T) *collector {
	c := &collector{t: t, traces: make(map[string]string)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/metrics", func(_ http.ResponseWriter, r *http.Request) {
		var request collectormetrics.ExportMetricsServiceRequest
		c.read(r, &request)
		c.addMetrics(&request)
	})
	mux.HandleFunc("POST /v1/traces", func(_ http.ResponseWriter, r *http.Request) {
		var request collectortrace.ExportTraceServiceRequest
		c.read(r, &request)
		c.addSpans(&request)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *collector) read(r *http.Request, request proto.Message) {
	body, err := io.ReadAll(r.Body)
	assert.NoError(c.t, err)
	assert.NoError(c.t, proto.Unmarshal(body, request))
}

func (c *collector) addSpans(request *collectortrace.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				c.traces[span.Name] = hex.EncodeToString(span.TraceId)
				line := span.Name
				for _, event := range span.Events {
					line += " " + event.Name + attributes(event.Attributes)
				}
				c.spans = append(c.spans, line)
			}
		}
	}
}

func (c *collector) addMetrics(request *collectormetrics.ExportMetricsServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines []string
	for _, resource := range request.ResourceMetrics {
		for _, scope := range resource.ScopeMetrics {
			if !strings.HasPrefix(scope.Scope.Name, "github.com/penstock-go/penstock/metrics/otel") {
				continue // of otelhttp or otelgrpc
			}
			for _, m := range scope.Metrics {
				lines = append(lines, c.lines(m)...)
			}
		}
	}
	slices.Sort(lines)
	c.exports = append(c.exports, lines)
}

// lines returns a line for each point of a metric: "name unit type{attributes} value", and the
// names of the spans of exemplars.
func (c *collector) lines(m *metrics.Metric) (lines []string) {
	add := func(kind string, attrs []*common.KeyValue, value any, exemplars []*metrics.Exemplar) {
		line := fmt.Sprintf("%s %s %s%s %v", m.Name, m.Unit, kind, attributes(attrs), value)
		for _, e := range exemplars {
			line += " of " + c.spanOf(hex.EncodeToString(e.TraceId))
		}
		lines = append(lines, line)
	}
	switch {
	case m.GetSum() != nil:
		kind := "upDown " + temporality(m.GetSum().AggregationTemporality)
		if m.GetSum().IsMonotonic {
			kind = "counter " + temporality(m.GetSum().AggregationTemporality)
		}
		for _, p := range m.GetSum().DataPoints {
			add(kind, p.Attributes, value(p), p.Exemplars)
		}
	case m.GetGauge() != nil:
		for _, p := range m.GetGauge().DataPoints {
			add("gauge", p.Attributes, value(p), p.Exemplars)
		}
	case m.GetHistogram() != nil:
		for _, p := range m.GetHistogram().DataPoints {
			add("histogram "+temporality(m.GetHistogram().AggregationTemporality), p.Attributes,
				fmt.Sprintf("%d calls %.3f", p.Count, p.GetSum()), p.Exemplars)
		}
	case m.GetExponentialHistogram() != nil:
		for _, p := range m.GetExponentialHistogram().DataPoints {
			add("exponential "+temporality(m.GetExponentialHistogram().AggregationTemporality), p.Attributes,
				fmt.Sprintf("%d calls %.3f scale %d", p.Count, p.GetSum(), p.Scale), p.Exemplars)
		}
	}
	return lines
}

// spanOf returns the name of the span of a trace.
func (c *collector) spanOf(trace string) string {
	for name, id := range c.traces {
		if id == trace {
			return name
		}
	}
	return "an unknown trace"
}

func temporality(of metrics.AggregationTemporality) string {
	return strings.ToLower(strings.TrimPrefix(of.String(), "AGGREGATION_TEMPORALITY_"))
}

func value(p *metrics.NumberDataPoint) any {
	if _, isInt := p.Value.(*metrics.NumberDataPoint_AsInt); isInt {
		return p.GetAsInt()
	}
	return p.GetAsDouble()
}

func attributes(list []*common.KeyValue) string {
	var texts []string
	for _, a := range list {
		texts = append(texts, strings.TrimPrefix(a.Key, "penstock.")+"="+strings.TrimSpace(valueText(a.Value)))
	}
	slices.Sort(texts)
	return "{" + strings.Join(texts, " ") + "}"
}

func valueText(of *common.AnyValue) string {
	if _, isText := of.Value.(*common.AnyValue_StringValue); isText {
		return of.GetStringValue()
	}
	return fmt.Sprint(of.GetDoubleValue())
}

// exported returns the lines of an export about some metrics.
func (c *collector) exported(i int, names ...string) (lines []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Greater(c.t, len(c.exports), i)
	for _, line := range c.exports[i] {
		if name, _, _ := strings.Cut(line, " "); slices.Contains(names, name) {
			lines = append(lines, line)
		}
	}
	return lines
}

// shop is a service on a virtual clock that exports to a collector.
type shop struct {
	*core.Engine
	clock *clock.Virtual
	seen  telemetry
	to    *collector
}

func newShop(t *testing.T, temporality sdkmetric.TemporalitySelector) *shop {
	s := &shop{clock: clock.NewVirtual(time.Unix(1_800_000_000, 0)), to: newCollector(t)}
	var err error
	s.seen, err = newTelemetry(t.Context(), s.to.url, temporality)
	require.NoError(t, err)
	options := penstockotel.Options{MeterProvider: s.seen.meters}
	observer, err := penstockotel.NewObserver(core.Observer{}, options)
	require.NoError(t, err)
	s.Engine = core.New(core.Config{Clock: s.clock, Observer: observer, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(s.Close)
	require.NoError(t, s.Load(rules.Set{Flow: []flow.Rule{
		{Name: "orders-limit", Resource: "orders", Limit: 20, Window: 10 * time.Second},
		{Name: "mail-pace", Resource: "mail", Limit: 1, Algorithm: flow.Throttle, MaxWait: 5 * time.Second},
	}}))
	_, err = penstockotel.Register(s.Engine, options)
	require.NoError(t, err)
	for _, p := range s.seen.durations {
		p.Register(s.Engine)
	}
	return s
}

// call makes a call that takes some time within a span, and lets time pass while it waits.
func (s *shop) call(t *testing.T, span, resource string, tokens int, took time.Duration) {
	ctx, of := s.seen.traces.Tracer("shop").Start(t.Context(), span)
	defer of.End()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if guard, err := s.Entry(ctx, resource, core.Tokens(tokens)); err == nil {
			s.clock.Advance(took)
			guard.Exit()
		}
	}()
	for {
		select {
		case <-done:
			return
		default:
			if s.clock.Timers() > 0 {
				s.clock.Advance(time.Second)
			}
			runtime.Gosched()
		}
	}
}

// export sends the spans, then the metrics.
func (s *shop) export(t *testing.T) {
	require.NoError(t, s.seen.traces.ForceFlush(t.Context()))
	require.NoError(t, s.seen.meters.ForceFlush(t.Context()))
}

// exportTwice makes some calls and exports what there is, twice.
func exportTwice(t *testing.T, temporality sdkmetric.TemporalitySelector) *collector {
	s := newShop(t, temporality)
	s.call(t, "order 1", "orders", 12, 30*time.Millisecond)
	s.call(t, "order 2", "orders", 12, 0)
	s.call(t, "mail 1", "mail", 1, 0)
	s.call(t, "mail 2", "mail", 1, 250*time.Millisecond)
	s.export(t)
	s.call(t, "order 3", "orders", 8, 40*time.Millisecond)
	s.call(t, "order 4", "orders", 8, 0)
	s.export(t)
	require.NoError(t, s.seen.shutdown(context.Background()))
	return s.to
}

var calls = []string{"penstock.requests", "penstock.tokens", "penstock.active_requests", "penstock.rule.limit"}

func TestOTLPHasCumulativeMetrics(t *testing.T) {
	t.Parallel()
	to := exportTwice(t, sdkmetric.CumulativeTemporalitySelector)
	assert.Equal(t, []string{
		"penstock.active_requests {request} upDown cumulative{resource=mail} 0",
		"penstock.active_requests {request} upDown cumulative{resource=orders} 0",
		"penstock.requests {request} counter cumulative{resource=mail result=acquired} 2",
		"penstock.requests {request} counter cumulative{resource=mail result=refused} 0",
		"penstock.requests {request} counter cumulative{resource=orders result=acquired} 1",
		"penstock.requests {request} counter cumulative{resource=orders result=refused} 1",
		"penstock.rule.limit {token}/s gauge{resource=mail rule.kind=flow rule.name=mail-pace} 1",
		"penstock.rule.limit {token}/s gauge{resource=orders rule.kind=flow rule.name=orders-limit} 2",
		"penstock.tokens {token} counter cumulative{resource=mail result=acquired} 2",
		"penstock.tokens {token} counter cumulative{resource=mail result=refused} 0",
		"penstock.tokens {token} counter cumulative{resource=orders result=acquired} 12",
		"penstock.tokens {token} counter cumulative{resource=orders result=refused} 12",
	}, to.exported(0, calls...))
	assert.Equal(t, []string{
		"penstock.requests {request} counter cumulative{resource=mail result=acquired} 2",
		"penstock.requests {request} counter cumulative{resource=mail result=refused} 0",
		"penstock.requests {request} counter cumulative{resource=orders result=acquired} 2",
		"penstock.requests {request} counter cumulative{resource=orders result=refused} 2",
	}, to.exported(1, "penstock.requests"))
	assert.Equal(t, []string{
		"penstock.request.duration s exponential cumulative{resource=mail} 2 calls 0.250 scale 3",
		"penstock.request.duration s exponential cumulative{resource=orders} 2 calls 0.070 scale 3",
	}, to.exported(1, "penstock.request.duration"))
}

func TestOTLPHasDeltaMetrics(t *testing.T) {
	t.Parallel()
	to := exportTwice(t, sdkmetric.DeltaTemporalitySelector)
	assert.Equal(t, []string{
		"penstock.active_requests {request} upDown cumulative{resource=mail} 0",
		"penstock.active_requests {request} upDown cumulative{resource=orders} 0",
		"penstock.requests {request} counter delta{resource=mail result=acquired} 0",
		"penstock.requests {request} counter delta{resource=mail result=refused} 0",
		"penstock.requests {request} counter delta{resource=orders result=acquired} 1",
		"penstock.requests {request} counter delta{resource=orders result=refused} 1",
		"penstock.rule.limit {token}/s gauge{resource=mail rule.kind=flow rule.name=mail-pace} 1",
		"penstock.rule.limit {token}/s gauge{resource=orders rule.kind=flow rule.name=orders-limit} 2",
		"penstock.tokens {token} counter delta{resource=mail result=acquired} 0",
		"penstock.tokens {token} counter delta{resource=mail result=refused} 0",
		"penstock.tokens {token} counter delta{resource=orders result=acquired} 8",
		"penstock.tokens {token} counter delta{resource=orders result=refused} 8",
	}, to.exported(1, calls...))
	assert.Equal(t, []string{
		"penstock.request.duration s exponential delta{resource=mail} 2 calls 0.250 scale 3",
		"penstock.request.duration s exponential delta{resource=orders} 1 calls 0.030 scale 3",
	}, to.exported(0, "penstock.request.duration"))
	assert.Equal(t, []string{
		"penstock.request.duration s exponential delta{resource=orders} 1 calls 0.040 scale 3",
	}, to.exported(1, "penstock.request.duration"))
}

// Calls that waited or were refused are in metrics with their traces, and in events of their spans.
func TestOTLPHasExemplarsAndEventsOfSpans(t *testing.T) {
	t.Parallel()
	to := exportTwice(t, sdkmetric.CumulativeTemporalitySelector)
	assert.Equal(t, []string{
		"penstock.request.time_in_queue s histogram cumulative{resource=mail result=acquired} 1 calls 1.000 of mail 2",
		"penstock.traced_refusals {request} counter cumulative" +
			"{reason=rateLimited resource=orders rule.kind=flow rule.name=orders-limit} 1 of order 2",
	}, to.exported(0, "penstock.request.time_in_queue", "penstock.traced_refusals"))
	assert.Equal(t, []string{
		"order 1",
		"order 2 penstock.refused{reason=rateLimited resource=orders retry_after=10 rule.kind=flow rule.name=orders-limit}",
		"mail 1",
		"mail 2 penstock.waited{resource=mail result=acquired wait=1}",
		"order 3",
		"order 4 penstock.refused{reason=rateLimited resource=orders retry_after=8.7 rule.kind=flow rule.name=orders-limit}",
	}, to.spans)
}

// The SDK cuts off what is more than its own bound, which the example raises.
func TestOTLPHasAsManyResourcesAsThereMayBe(t *testing.T) {
	t.Parallel()
	s := newShop(t, sdkmetric.CumulativeTemporalitySelector)
	for i := range penstockotel.DefaultMaxResources + 200 {
		guard, err := s.Entry(t.Context(), fmt.Sprint("r", i))
		require.NoError(t, err)
		guard.Exit()
	}
	s.export(t)
	require.NoError(t, s.seen.shutdown(context.Background()))
	requests := s.to.exported(0, "penstock.requests")
	assert.Len(t, requests, 2*(penstockotel.DefaultMaxResources+1))
	assert.Contains(t, requests, "penstock.requests {request} counter cumulative{resource=(other) result=acquired} 202")
	assert.NotContains(t, strings.Join(requests, "\n"), "otel.metric.overflow")
}

func TestExampleSendsToACollector(t *testing.T) {
	t.Parallel()
	to := newCollector(t)
	require.NoError(t, run(t.Context(), io.Discard, to.url))
	assert.Equal(t, []string{
		"penstock.requests {request} counter cumulative{resource=/grpc.health.v1.Health/Check result=acquired} 2",
		"penstock.requests {request} counter cumulative{resource=/grpc.health.v1.Health/Check result=refused} 1",
		"penstock.requests {request} counter cumulative{resource=GET:/orders/{id} result=acquired} 2",
		"penstock.requests {request} counter cumulative{resource=GET:/orders/{id} result=refused} 1",
	}, to.exported(0, "penstock.requests"))
	assert.Len(t, to.exported(0, "penstock.traced_refusals"), 2)
	assert.Len(t, to.spans, 6)
}
