package durations

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/stat"
)

const (
	scope       = "github.com/penstock-go/penstock/metrics/otel/durations"
	name        = "penstock.request.duration"
	description = "How long calls took, from when they passed to their end."

	resourceKey = attribute.Key("penstock.resource")
)

var _ metric.Producer = (*Producer)(nil)

// Producer produces the histogram of durations, for [metric.WithProducer]. [NewProducer] returns
// one. Each reader needs one of its own. It is safe for concurrent use.
type Producer struct {
	options Options
	bounds  []float64 // seconds

	// mu guards what follows. It is held while the engine is read, so that concurrent
	// collections add their snapshots in order.
	mu          sync.Mutex
	engine      *core.Engine // nil until it is registered
	accumulator *core.Accumulator
	collected   time.Time // the last time
}

// NewProducer returns a producer that has nothing until Register is called: the reader is made
// before the engine, which needs the MeterProvider for its observer.
func NewProducer(options Options) *Producer {
	p := &Producer{options: options.withDefaults()}
	for _, bound := range p.options.Bounds {
		p.bounds = append(p.bounds, bound.Seconds())
	}
	return p
}

// Register has the producer read the engine, [penstock.Default] if that is nil, from now on, and no
// other that was registered before. Call it before the first call: the first collection has all
// calls since the engine was made.
func (p *Producer) Register(engine *core.Engine) {
	if engine == nil {
		engine = penstock.Default()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.engine, p.accumulator = engine, &core.Accumulator{MaxResources: p.options.MaxResources}
	p.collected = clock.TimeOf(engine.Clock(), engine.Clock().Now())
}

// series is the histogram of one resource.
type series struct {
	attributes attribute.Set
	start      time.Time // from which on calls are in it

	// until the last collection
	times stat.Distribution
	sum   time.Duration
}

// Produce implements [metric.Producer].
func (p *Producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.engine == nil {
		return nil, nil
	}
	snapshot := p.engine.Snapshot()
	at := clock.TimeOf(p.engine.Clock(), snapshot.At)
	var points []series
	for _, t := range p.accumulator.Add(&snapshot) {
		now, known := t.Data.(*series)
		if !known {
			now = &series{attributes: attribute.NewSet(resourceKey.String(t.Name)), start: p.collected}
			t.Data = now
		}
		point := series{now.attributes, now.start, t.ResponseTimes, t.ResponseTime}
		if p.options.Temporality == metricdata.DeltaTemporality {
			point = series{now.attributes, p.collected, t.ResponseTimes.Since(now.times), t.ResponseTime - now.sum}
		}
		if point.times.Count > 0 {
			points = append(points, point)
		}
		now.sum, now.times.Count = t.ResponseTime, t.ResponseTimes.Count
		now.times.Buckets = append(now.times.Buckets[:0], t.ResponseTimes.Buckets...) // which the next collection changes
	}
	p.collected = at
	if len(points) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{{
		Scope:   instrumentation.Scope{Name: scope},
		Metrics: []metricdata.Metrics{{Name: name, Description: description, Unit: "s", Data: p.aggregation(points, at)}},
	}}, nil
}

func (p *Producer) aggregation(points []series, at time.Time) metricdata.Aggregation {
	if p.options.Exponential {
		histogram := metricdata.ExponentialHistogram[float64]{Temporality: p.options.Temporality}
		for _, s := range points {
			histogram.DataPoints = append(histogram.DataPoints, s.exponential(at))
		}
		return histogram
	}
	histogram := metricdata.Histogram[float64]{Temporality: p.options.Temporality}
	for _, s := range points {
		histogram.DataPoints = append(histogram.DataPoints, s.explicit(at, p.bounds))
	}
	return histogram
}
