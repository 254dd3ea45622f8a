package adaptive_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/rule"
)

// A threshold on the mean response time is kept, whatever the service and the demand, and most
// of the capacity is made use of.
func TestMeanResponseTimeIsKeptAtItsThreshold(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1, 8, 64} {
		for _, service := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond} {
			for _, times := range []float64{2, 5, 10} {
				for _, demand := range []float64{1.2, 3, 10} {
					if demand*float64(count)/service.Seconds() > 20_000 {
						continue // such a run takes long
					}
					t.Run(fmt.Sprintf("%d × %v, %v times, at %v", count, service, times, demand), func(t *testing.T) {
						t.Parallel()
						threshold := time.Duration(times * float64(service))
						w := newWorkers(t, adaptive.Rule{Strategy: adaptive.Threshold, AvgRT: threshold}, count, service)
						load := source{rate: demand * w.capacity()}
						w.run(15*time.Second, load)
						for _, length := range []time.Duration{30 * time.Second, 5 * time.Second} {
							w.measure()
							w.run(length, load)
							if length > 5*time.Second {
								assert.Less(t, w.mean().Seconds(), 1.3*threshold.Seconds())
								assert.Greater(t, float64(w.served)/length.Seconds(), 0.75*w.capacity())
							} else {
								assert.Less(t, w.mean().Seconds(), 2*threshold.Seconds(), "it does not swing")
							}
						}
					})
				}
			}
		}
	}
}

// The first calls that are too many find no limit. The backlog that they make is soon served.
func TestMeanResponseTimeIsSoonAtItsThreshold(t *testing.T) {
	t.Parallel()
	const threshold = 50 * time.Millisecond
	for _, before := range []float64{0, 0.5} {
		w := newWorkers(t, adaptive.Rule{Strategy: adaptive.Threshold, AvgRT: threshold}, 8, 10*time.Millisecond)
		if before > 0 {
			w.run(10*time.Second, source{rate: before * w.capacity()})
			w.measure()
		}
		w.run(30*time.Second, source{rate: 10 * w.capacity()})
		assert.Less(t, w.mean(), threshold*13/10, "from the first call on, after %v", before)
		assert.Greater(t, w.served, int(0.95*30*w.capacity()))
	}
}

func TestMeanBelowItsThresholdRefusesNothing(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1, 8, 64} {
		w := newWorkers(t, adaptive.Rule{Strategy: adaptive.Threshold, AvgRT: 200 * time.Millisecond}, count, 10*time.Millisecond)
		out := w.run(time.Minute, source{rate: 0.8 * w.capacity()})
		assert.InDelta(t, 1, out[0].share(), 0, "%d workers", count)
	}
}

// The service becomes four times as slow, and as quick again as it was.
func TestMeanResponseTimeFollowsTheService(t *testing.T) {
	t.Parallel()
	const threshold = 100 * time.Millisecond
	w := newWorkers(t, adaptive.Rule{Strategy: adaptive.Threshold, AvgRT: threshold}, 8, 5*time.Millisecond)
	load := source{rate: 1.5 * w.capacity()}
	w.run(10*time.Second, load)
	for _, service := range []time.Duration{20 * time.Millisecond, 5 * time.Millisecond} {
		w.service = service
		w.run(3*time.Second, load)
		w.measure()
		w.run(10*time.Second, load)
		assert.Less(t, w.mean(), threshold*13/10)
		assert.Greater(t, float64(w.served), 0.9*10*w.capacity())
	}
	out := w.run(30*time.Second, source{rate: 0.5 * w.capacity()})
	assert.Greater(t, out[0].share(), 0.999, "after the overload")
}

// With calls of one priority, of which it is not known who makes them or which are all of one
// caller, nothing is refused while a limit is not reached.
func TestLimitRefusesNothingWhilePlacesAreFree(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	t.Parallel()
	for _, r := range []adaptive.Rule{
		{Concurrency: 1}, {Concurrency: 4}, {Concurrency: 20}, {QPS: 3}, {QPS: 20}, {QPS: 200}, {Concurrency: 4, QPS: 30},
	} {
		for _, caller := range []string{"", "gateway"} {
			for _, demand := range []float64{0.8, 1.2, 3, 20} {
				const service = 50 * time.Millisecond
				rate := r.QPS
				if r.Concurrency > 0 {
					rate = float64(r.Concurrency) / service.Seconds()
				}
				r.Strategy = adaptive.Threshold
				load := source{rate: demand * rate, caller: caller}
				limited, plain := newWorkers(t, r, 1000, service), newWorkers(t, r, 1000, service)
				plain.plain = true
				got, want := limited.run(time.Minute, load), plain.run(time.Minute, load)
				require.Equal(t, want, got, "concurrency %d, qps %v, demand %v, caller %q", r.Concurrency, r.QPS, demand, caller)
			}
		}
	}
}

// Important calls need a part of a limit and come at random. Others want the rest many times.
func TestImportantCallsAreServedAtSmallLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	t.Parallel()
	const service = 50 * time.Millisecond
	limits := []adaptive.Rule{{QPS: 20}, {Concurrency: 20}, {QPS: 50}, {Concurrency: 50}, {QPS: 200}, {Concurrency: 200}}
	for _, r := range limits[:longtest.Of(2, len(limits))] {
		for _, important := range []float64{0.2, 0.5} {
			for _, others := range []float64{2, 10} {
				rate := r.QPS + float64(r.Concurrency)/service.Seconds()
				r.Strategy = adaptive.Threshold
				w := newWorkers(t, r, 10_000, service)
				load := []source{
					{rate: important * rate, priority: rule.PriorityHigh}, {rate: others * rate, priority: rule.PriorityLow},
				}
				w.run(10*time.Second, load...)
				out := w.run(300*time.Second, load...)
				name := fmt.Sprintf("concurrency %d, qps %v, important %v, others %v", r.Concurrency, r.QPS, important, others)
				assert.GreaterOrEqual(t, out[0].share(), 0.99, name)
				assert.Greater(t, float64(out[0].passed+out[1].passed)/300, 0.58*rate, name)
			}
		}
	}
}

func TestFractionsOfQPSAreKept(t *testing.T) {
	t.Parallel()
	for _, qps := range []float64{1, 1.1, 2.5, 3.75, 20.3, 1000.5} {
		s := newScene(t, adaptive.Rule{Strategy: adaptive.Threshold, QPS: qps})
		out := s.run(100*time.Second, nil, stream{rate: max(10*qps, 100), takes: time.Millisecond})
		assert.InDelta(t, 100*qps, out[0].passed, 1.5+0.02*qps, "qps %v", qps)
	}
	s := newScene(t, adaptive.Rule{Strategy: adaptive.Threshold, QPS: 2.5})
	assert.Equal(t, 25, s.run(10*time.Second, nil, stream{rate: 100, takes: time.Millisecond})[0].passed)
}
