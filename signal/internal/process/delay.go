package process

import (
	"math"
	"runtime/metrics"
	"slices"

	"github.com/penstock-go/penstock/clock"
)

// SchedulerDelay returns how long, in seconds, goroutines that could run waited for a
// processor: the 99th percentile of those that began to run since the call before, or 0 if
// there were none. The runtime measures one in eight, in classes that are up to a quarter
// wide; it is the upper end of a class. The first call returns 0.
func (r *Reader) SchedulerDelay(now clock.Instant) (float64, error) {
	if r.delayDue.Due(now) {
		r.delayErr = r.measureDelay()
	}
	return r.delay, r.delayErr
}

func (r *Reader) measureDelay() error {
	if err := r.fill(r.delaySamples); err != nil {
		return err
	}
	histogram := r.delaySamples[0].Value.Float64Histogram()
	r.delay = 0
	if len(r.counts) == len(histogram.Counts) {
		r.delay = percentile99(r.counts, histogram)
	}
	r.counts = append(r.counts[:0], histogram.Counts...) // the runtime uses the slice again
	return nil
}

// percentile99 returns the 99th percentile of what a histogram has beyond earlier counts.
func percentile99(earlier []uint64, histogram *metrics.Float64Histogram) float64 {
	fresh := slices.Clone(histogram.Counts)
	total := uint64(0)
	for i := range fresh {
		fresh[i] -= min(earlier[i], fresh[i])
		total += fresh[i]
	}
	above := total / 100 // as many may be longer
	for i, n := range slices.Backward(fresh) {
		if n <= above {
			above -= n
			continue
		}
		upper := histogram.Buckets[i+1]
		if math.IsInf(upper, 1) {
			upper = histogram.Buckets[i]
		}
		return max(upper, 0)
	}
	return 0
}
