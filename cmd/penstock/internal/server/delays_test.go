package server

import (
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestMeanDelayIsOfWhatRanSinceTheReadingBefore(t *testing.T) {
	counts := []uint64{100, 0, 7, 0}
	buckets := []float64{0, 0.001, 0.01, 1, 2}
	d := newDelays()
	d.read = func(samples []metrics.Sample) *metrics.Float64Histogram {
		assert.Equal(t, "/sched/latencies:seconds", samples[0].Name)
		return &metrics.Float64Histogram{Counts: counts, Buckets: buckets}
	}
	assert.Zero(t, d.mean(), "there was none before")
	assert.Zero(t, d.mean(), "nothing ran")
	counts[0], counts[1], counts[2] = 101, 1, 9
	assert.Equal(t, 21*time.Millisecond/4, d.mean())
	assert.Zero(t, d.mean())
}

func TestRuntimeTellsDelays(t *testing.T) {
	samples := newDelays().samples
	assert.NotNil(t, readDelays(samples))
	samples[0].Name = "/none"
	assert.Nil(t, readDelays(samples))
}
