package durations_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/metrics/otel/durations"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is an engine on a clock that the test moves, and a reader of its durations.
type service struct {
	*core.Engine
	clock  *clock.Virtual
	reader *metric.ManualReader
}

func newService(t *testing.T, options durations.Options) *service {
	t.Helper()
	s := &service{clock: clock.NewVirtual(time.Unix(1000, 0))}
	s.Engine = core.New(core.Config{Clock: s.clock, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(s.Close)
	producer := durations.NewProducer(options)
	s.reader = metric.NewManualReader(metric.WithProducer(producer))
	provider := metric.NewMeterProvider(metric.WithReader(s.reader))
	assert.Nil(t, s.collect(t), "without an engine")
	producer.Register(s.Engine)
	t.Cleanup(func() { require.NoError(t, provider.Shutdown(context.Background())) })
	return s
}

func (s *service) call(t *testing.T, resource string, took time.Duration) {
	guard, err := s.Entry(t.Context(), resource)
	require.NoError(t, err)
	s.clock.Advance(took)
	guard.Exit()
}

// collect returns the histogram; nil if there is none.
func (s *service) collect(t *testing.T) metricdata.Aggregation {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, s.reader.Collect(t.Context(), &all))
	if len(all.ScopeMetrics) == 0 {
		return nil
	}
	require.Len(t, all.ScopeMetrics, 1)
	require.Len(t, all.ScopeMetrics[0].Metrics, 1)
	of := all.ScopeMetrics[0].Metrics[0]
	assert.Equal(t, "penstock.request.duration", of.Name)
	assert.Equal(t, "s", of.Unit)
	return of.Data
}

// texts returns a line for each point: the resource, the seconds from 1000 on, count, sum and
// counts.
func texts(of metricdata.Aggregation) (lines []string) {
	line := func(attributes fmt.Stringer, start, end time.Time, count uint64, sum float64, counts any) {
		lines = append(lines, fmt.Sprintf("%s %d-%d count %d sum %.3f %v",
			attributes, start.Unix()-1000, end.Unix()-1000, count, sum, counts))
	}
	switch data := of.(type) {
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			resource, _ := p.Attributes.Value("penstock.resource")
			line(text(resource.AsString()), p.StartTime, p.Time, p.Count, p.Sum, p.BucketCounts)
		}
	case metricdata.ExponentialHistogram[float64]:
		for _, p := range data.DataPoints {
			resource, _ := p.Attributes.Value("penstock.resource")
			line(text(resource.AsString()), p.StartTime, p.Time, p.Count, p.Sum,
				fmt.Sprint(p.ZeroCount, " ", p.PositiveBucket.Offset, " ", p.PositiveBucket.Counts))
		}
	}
	return lines
}

type text string

func (t text) String() string { return string(t) }

func TestCumulativeDurations(t *testing.T) {
	t.Parallel()
	s := newService(t, durations.Options{Bounds: []time.Duration{time.Second, 100 * time.Millisecond}, MaxResources: 2})
	assert.Nil(t, s.collect(t))
	s.call(t, "a", 50*time.Millisecond)
	s.call(t, "a", 950*time.Millisecond)
	s.call(t, "b", 2*time.Second)
	data := s.collect(t)
	assert.Equal(t, metricdata.CumulativeTemporality, data.(metricdata.Histogram[float64]).Temporality)
	assert.Equal(t, []float64{0.1, 1}, data.(metricdata.Histogram[float64]).DataPoints[0].Bounds)
	assert.Equal(t, []string{"a 0-3 count 2 sum 1.000 [1 1 0]", "b 0-3 count 1 sum 2.000 [0 0 1]"}, texts(data))
	s.call(t, "c", time.Second/2)
	s.call(t, "d", time.Second/2)
	s.call(t, "a", 3*time.Second)
	assert.Equal(t, []string{
		"(other) 3-7 count 2 sum 1.000 [0 2 0]", "a 0-7 count 3 sum 4.000 [1 1 1]", "b 0-7 count 1 sum 2.000 [0 0 1]",
	}, texts(s.collect(t)))
}

func TestDeltaDurations(t *testing.T) {
	t.Parallel()
	s := newService(t, durations.Options{Bounds: []time.Duration{100 * time.Millisecond}, Temporality: metricdata.DeltaTemporality})
	s.call(t, "a", time.Second)
	s.call(t, "b", time.Second)
	data := s.collect(t)
	assert.Equal(t, metricdata.DeltaTemporality, data.(metricdata.Histogram[float64]).Temporality)
	assert.Equal(t, []string{"a 0-2 count 1 sum 1.000 [0 1]", "b 0-2 count 1 sum 1.000 [0 1]"}, texts(data))
	s.call(t, "a", 3*time.Second)
	assert.Equal(t, []string{"a 2-5 count 1 sum 3.000 [0 1]"}, texts(s.collect(t)), "nothing happened on b")
	assert.Nil(t, s.collect(t))
	s.clock.Advance(2 * time.Minute)
	s.call(t, "c", 0) // the others are forgotten
	s.call(t, "a", time.Second)
	assert.Equal(t, []string{"a 5-126 count 1 sum 1.000 [0 1]", "c 5-126 count 1 sum 0.000 [1 0]"}, texts(s.collect(t)))
}

func TestExponentialDurations(t *testing.T) {
	t.Parallel()
	s := newService(t, durations.Options{Exponential: true})
	s.call(t, "a", 0)
	s.call(t, "a", 260*time.Millisecond)
	s.call(t, "a", 490*time.Millisecond)
	s.call(t, "a", 490*time.Millisecond)
	data := s.collect(t)
	assert.Equal(t, metricdata.CumulativeTemporality, data.(metricdata.ExponentialHistogram[float64]).Temporality)
	assert.EqualValues(t, 3, data.(metricdata.ExponentialHistogram[float64]).DataPoints[0].Scale)
	assert.Equal(t, []string{"a 0-1 count 4 sum 1.240 1 -16 [1 0 0 0 0 0 0 2]"}, texts(data), "0.25 s is 2^(-16/8)")
}

// However long calls take: each is in the bucket that has it, unless it is within 3.2 % of a
// bound.
func TestDurationsAreInTheirBuckets(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		took := time.Duration(math.Exp(random.Float64() * math.Log(float64(time.Hour))))
		explicit, exponential := newService(t, durations.Options{}), newService(t, durations.Options{Exponential: true})
		explicit.call(t, "a", took)
		exponential.call(t, "a", took)
		p := explicit.collect(t).(metricdata.Histogram[float64]).DataPoints[0]
		i := slices.Index(p.BucketCounts, 1)
		low, high := 0.0, math.Inf(1)
		if i > 0 {
			low = p.Bounds[i-1]
		}
		if i < len(p.Bounds) {
			high = p.Bounds[i]
		}
		assert.LessOrEqual(t, low, took.Seconds()*1.032, took)
		assert.GreaterOrEqual(t, high, took.Seconds()/1.032, took)
		e := exponential.collect(t).(metricdata.ExponentialHistogram[float64]).DataPoints[0]
		require.Equal(t, []uint64{1}, e.PositiveBucket.Counts)
		upper := math.Exp2(float64(e.PositiveBucket.Offset+1) / 8)
		assert.GreaterOrEqual(t, upper, took.Seconds()/1.032, took)
		assert.LessOrEqual(t, upper/math.Exp2(1./8), took.Seconds()*1.032, took)
	}
}

func TestConcurrentCollectionsHaveEachCallOnce(t *testing.T) {
	t.Parallel()
	s := newService(t, durations.Options{Temporality: metricdata.DeltaTemporality})
	var mu sync.Mutex // guards count
	var count uint64
	collect := func() {
		data, _ := s.collect(t).(metricdata.Histogram[float64])
		mu.Lock()
		defer mu.Unlock()
		for _, p := range data.DataPoints {
			count += p.Count
		}
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				s.call(t, "r", time.Millisecond)
				collect()
			}
		})
	}
	all.Wait()
	collect()
	assert.EqualValues(t, 400, count)
}
