package process

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
)

func at(seconds float64) clock.Instant { return clock.Instant(seconds * float64(time.Second)) }

func TestMemoryInUseIsWhatACollectionLeaves(t *testing.T) {
	tests := map[string]struct {
		limit, total, released, free, objects, live uint64
		want                                        Memory
	}{
		"garbage":                    {1000, 900, 100, 50, 600, 400, Memory{Limit: 1000, Used: 550, Garbage: 250}},
		"no limit":                   {math.MaxInt64, 900, 100, 50, 600, 400, Memory{Limit: math.MaxUint64, Used: 550, Garbage: 250}},
		"more live than objects":     {1000, 900, 100, 50, 300, 400, Memory{Limit: 1000, Used: 750, Garbage: 50}},
		"counters of other instants": {1000, 100, 200, 50, 600, 400, Memory{Limit: 1000}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, memoryOf(test.limit, test.total, test.released, test.free, test.objects, test.live))
		})
	}
}

func TestGarbageOfThisProcessIsNotInUse(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(16 << 30))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const size = 64 << 20
	r := New(metrics.Read)
	runtime.GC()
	start, err := r.Memory()
	require.NoError(t, err)
	require.Equal(t, uint64(16<<30), start.Limit)

	data := make([]byte, size)
	runtime.GC()
	live, err := r.Memory()
	require.NoError(t, err)
	require.GreaterOrEqual(t, live.Used, start.Used+size*9/10)
	runtime.KeepAlive(data)

	data = make([]byte, size) // and those before are garbage, as are these later
	more, err := r.Memory()
	require.NoError(t, err)
	require.Less(t, more.Used, live.Used+size/2)
	require.GreaterOrEqual(t, more.Garbage, uint64(size*9/10))
	runtime.KeepAlive(data)
}

func TestShareOfCollectionsFallsWhenNoneEnds(t *testing.T) {
	var c collections
	c.count(at(0), 3, 100, 2)
	require.Zero(t, c.share, "it takes two readings")
	c.count(at(1), 3, 100, 2)
	require.Zero(t, c.share, "no collection has ended")
	c.count(at(2), 4, 104, 2)
	require.InDelta(t, 0.25, c.share, 1e-9)
	c.count(at(3), 4, 104, 2)
	require.InDelta(t, 1.0/6, c.share, 1e-9, "two processors had two seconds without one")
	c.count(at(4), 6, 108, 2)
	require.InDelta(t, 0.5, c.share, 1e-9)
	c.count(at(4000), 6, 108, 2)
	require.InDelta(t, 0, c.share, 1e-3)
	c.count(at(4001), 1, 50, 2)
	require.Zero(t, c.share, "counters that go back begin anew")
	c.count(at(4002), 2, 52, 2)
	require.InDelta(t, 0.5, c.share, 1e-9)
}

func TestCollectionsOfThisProcessAreSeen(t *testing.T) {
	r := New(metrics.Read)
	share, err := r.GC(at(0))
	require.NoError(t, err)
	require.Zero(t, share)
	runtime.GC()
	share, err = r.GC(at(1))
	require.NoError(t, err)
	require.Positive(t, share)
	require.LessOrEqual(t, share, 1.0)
}

func TestPercentileIsThatOfWhatIsNew(t *testing.T) {
	buckets := []float64{math.Inf(-1), 0, 1, 2, 4, math.Inf(1)}
	tests := map[string]struct {
		earlier, now []uint64
		want         float64
	}{
		"nothing":                    {[]uint64{5, 5, 5, 5, 5}, []uint64{5, 5, 5, 5, 5}, 0},
		"one":                        {[]uint64{5, 5, 5, 5, 5}, []uint64{5, 5, 6, 5, 5}, 2},
		"the longest of less":        {[]uint64{0, 0, 0, 0, 0}, []uint64{0, 98, 0, 1, 0}, 4},
		"one of a hundred":           {[]uint64{0, 0, 0, 0, 0}, []uint64{0, 99, 0, 1, 0}, 1},
		"two of a hundred":           {[]uint64{0, 0, 0, 0, 0}, []uint64{0, 98, 1, 1, 0}, 2},
		"older ones do not count":    {[]uint64{0, 0, 0, 100, 100}, []uint64{0, 100, 0, 100, 100}, 1},
		"no upper end":               {[]uint64{0, 0, 0, 0, 0}, []uint64{0, 0, 0, 0, 1}, 4},
		"below zero":                 {[]uint64{0, 0, 0, 0, 0}, []uint64{1, 0, 0, 0, 0}, 0},
		"counts that have gone back": {[]uint64{9, 9, 9, 9, 9}, []uint64{0, 10, 0, 0, 0}, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := percentile99(test.earlier, &metrics.Float64Histogram{Counts: test.now, Buckets: buckets})
			require.InDelta(t, test.want, got, 0)
		})
	}
}

func TestDelaysOfThisProcessAreSeen(t *testing.T) {
	r := New(metrics.Read)
	delay, err := r.SchedulerDelay(at(0))
	require.NoError(t, err)
	require.Zero(t, delay)
	var done sync.WaitGroup
	for range 2000 {
		done.Go(runtime.Gosched)
	}
	done.Wait()
	delay, err = r.SchedulerDelay(at(0.01))
	require.NoError(t, err)
	require.Zero(t, delay, "too soon")
	delay, err = r.SchedulerDelay(at(1))
	require.NoError(t, err)
	require.Positive(t, delay)
}

func TestRuntimeThatLacksAMetricIsAnError(t *testing.T) {
	r := New(func([]metrics.Sample) {})
	_, err := r.Memory()
	require.ErrorContains(t, err, "the Go runtime has no metric /gc/gomemlimit:bytes")
	_, err = r.GC(at(0))
	require.ErrorContains(t, err, "the Go runtime has no metric /cpu/classes/gc/total:cpu-seconds")
	_, err = r.SchedulerDelay(at(0))
	require.ErrorContains(t, err, "the Go runtime has no metric /sched/latencies:seconds")
}
