package server

import (
	"runtime/metrics"
	"time"
)

// delays reads how long goroutines that could run waited for a processor. The signal schedulerDelay is the 99th
// percentile, which a stall of the machine makes large.
type delays struct {
	read    func([]metrics.Sample) *metrics.Float64Histogram
	samples []metrics.Sample
	counts  []uint64 // at the last reading
}

func newDelays() *delays {
	return &delays{read: readDelays, samples: []metrics.Sample{{Name: "/sched/latencies:seconds"}}}
}

// readDelays returns what the runtime has measured, one delay in eight, since the process began; nil if it does not.
func readDelays(samples []metrics.Sample) *metrics.Float64Histogram {
	metrics.Read(samples)
	if samples[0].Value.Kind() != metrics.KindFloat64Histogram {
		return nil
	}
	return samples[0].Value.Float64Histogram()
}

// mean returns how long those waited on average that began to run since the call before, by the lower ends of
// the classes of the runtime; 0 if there were none, and at the first call.
func (d *delays) mean() time.Duration {
	histogram := d.read(d.samples)
	if histogram == nil {
		return 0
	}
	sum, ran := 0.0, 0.0
	if len(d.counts) == len(histogram.Counts) {
		for i, count := range histogram.Counts {
			fresh := float64(count - d.counts[i])
			ran += fresh
			sum += fresh * max(histogram.Buckets[i], 0)
		}
	}
	d.counts = append(d.counts[:0], histogram.Counts...) // the runtime uses the slice again
	if ran == 0 {
		return 0
	}
	return time.Duration(sum / ran * float64(time.Second))
}
