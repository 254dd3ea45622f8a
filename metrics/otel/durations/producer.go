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
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/stat"
)

const (
	scope       = "github.com/penstock-go/penstock/metrics/otel/durations"
	name        = "penstock.request.duration"
	description = "How long calls took, from when they passed to their end."

	resourceKey = attribute.Key("penstock.resource")
)

// NewProducer returns a producer of the durations of calls of the engine, [penstock.Default] if
// that is nil, for [metric.WithProducer]. Each reader needs one of its own. Make it with the
// engine: the first collection has all calls since the engine was made.
func NewProducer(engine *core.Engine, options Options) metric.Producer {
	if engine == nil {
		engine = penstock.Default()
	}
	options = options.withDefaults()
	p := &producer{engine: engine, options: options, accumulator: core.NewAccumulator(options.MaxResources)}
	p.collected = engine.Clock().Now().Time()
	for _, bound := range options.Bounds {
		p.bounds = append(p.bounds, bound.Seconds())
	}
	return p
}

type producer struct {
	engine  *core.Engine
	options Options
	bounds  []float64 // seconds

	// mu guards what follows. It is held while the engine is read, so that concurrent
	// collections add their snapshots in order.
	mu          sync.Mutex
	accumulator *core.Accumulator
	collected   time.Time // the last time
	series      map[string]series
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
func (p *producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	snapshot := p.engine.Snapshot()
	at := snapshot.At.Time()
	present := make(map[string]series, len(p.series))
	var points []series
	for _, t := range p.accumulator.Add(&snapshot) {
		now, known := p.series[t.Name]
		if !known {
			now = series{attributes: attribute.NewSet(resourceKey.String(t.Name)), start: p.collected}
		}
		point := series{now.attributes, now.start, t.ResponseTimes, t.ResponseTime}
		if p.options.Temporality == metricdata.DeltaTemporality {
			point = series{now.attributes, p.collected, t.ResponseTimes.Since(now.times), t.ResponseTime - now.sum}
		}
		if point.times.Count > 0 {
			points = append(points, point)
		}
		now.times, now.sum = t.ResponseTimes, t.ResponseTime
		present[t.Name] = now
	}
	p.series, p.collected = present, at
	if len(points) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{{
		Scope:   instrumentation.Scope{Name: scope},
		Metrics: []metricdata.Metrics{{Name: name, Description: description, Unit: "s", Data: p.aggregation(points, at)}},
	}}, nil
}

func (p *producer) aggregation(points []series, at time.Time) metricdata.Aggregation {
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
