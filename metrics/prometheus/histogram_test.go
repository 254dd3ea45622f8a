package penstockprom_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	penstockprom "github.com/penstock-go/penstock/metrics/prometheus"
)

// responseTimes gathers the metric of the response times of a resource.
func responseTimes(t *testing.T, s service, resource string, histograms penstockprom.Histograms) *dto.Metric {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(penstockprom.NewCollector(s.Engine, penstockprom.Options{Histograms: histograms}))
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "penstock_response_time_seconds" && metric.GetLabel()[0].GetValue() == resource {
				return metric
			}
		}
	}
	require.Fail(t, "there is no such metric")
	return nil
}

func TestNativeHistogramHasEveryCallInTheBucketOfItsResponseTimeOrTheNext(t *testing.T) {
	s := newService(t, core.Config{})
	defer s.Close()
	random := rand.New(rand.NewPCG(1, 2))
	want := map[int32]float64{zeroBucket: 3}
	s.calls("r", 3)
	for range 2000 {
		took := time.Duration(math.Pow(10, 9*random.Float64())) // 1 ns to 1 s
		want[int32(math.Ceil(math.Log2(took.Seconds())*8))]++
		s.call("r", took, nil)
	}
	h := responseTimes(t, s, "r", penstockprom.NativeHistograms).GetHistogram()
	require.EqualValues(t, 3, h.GetSchema())
	assert.EqualValues(t, 2003, h.GetSampleCount())
	assert.Empty(t, h.GetBucket())
	got := nativeBuckets(h)
	assert.InDelta(t, 3, got[zeroBucket], 0)
	wantUpTo, gotUpTo, wantBefore, gotBefore := 0.0, 0.0, 0.0, 0.0
	for index := int32(-300); index < 8; index++ {
		wantUpTo, gotUpTo = wantUpTo+want[index], gotUpTo+got[index]
		assert.LessOrEqual(t, gotBefore, wantUpTo, "index %d", index)
		assert.LessOrEqual(t, wantBefore, gotUpTo, "index %d", index)
		wantBefore, gotBefore = wantUpTo, gotUpTo
	}
	assert.InDelta(t, 2000, gotUpTo, 0)
}

func TestNativeHistogramWithoutCallsIsStillNative(t *testing.T) {
	s := newService(t, core.Config{})
	defer s.Close()
	s.Resource("r")
	h := responseTimes(t, s, "r", penstockprom.NativeHistograms).GetHistogram()
	assert.EqualValues(t, 3, h.GetSchema())
	assert.Positive(t, h.GetZeroThreshold(), "by which scrapers know that it is native")
	assert.Zero(t, h.GetSampleCount())
}

func TestResponseTimesWithoutHistogramsAreASummary(t *testing.T) {
	s := newService(t, core.Config{})
	defer s.Close()
	s.call("r", time.Second, nil)
	s.call("r", 2*time.Second, nil)
	m := responseTimes(t, s, "r", penstockprom.NoHistograms)
	require.Nil(t, m.GetHistogram())
	assert.EqualValues(t, 2, m.GetSummary().GetSampleCount())
	assert.InDelta(t, 3, m.GetSummary().GetSampleSum(), 0)
	assert.Empty(t, m.GetSummary().GetQuantile())
}

// What a scrape has returned does not change when others come.
func TestConcurrentScrapesDoNotShareWhatTheyReturn(t *testing.T) {
	for name, histograms := range histogramsByName() {
		t.Run(name, func(t *testing.T) {
			s := newService(t, core.Config{})
			defer s.Close()
			collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{Histograms: histograms})
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range 8 {
						now := seriesOf(gather(t, collector))
						for _, key := range now.of("penstock_response_time_seconds_count") {
							assert.LessOrEqual(t, now[key], 1000.0)
						}
						assertOrderedTotals(t, now)
					}
				})
			}
			for i := range 1000 {
				s.call(string(rune('a'+i%7)), time.Duration(i)*time.Microsecond, nil)
			}
			wg.Wait()
			assert.InDelta(t, 1000, scrape(t, collector).sum("penstock_passed_total"), 0)
		})
	}
}

// assertOrderedTotals asserts that no bucket has more than the histogram.
func assertOrderedTotals(t assert.TestingT, s series) {
	for _, key := range slices.Concat(s.of("penstock_response_time_seconds_bucket"), s.of("penstock_response_time_seconds_native_bucket")) {
		assert.LessOrEqual(t, s[key], s.sum("penstock_response_time_seconds_count"), key)
	}
}
