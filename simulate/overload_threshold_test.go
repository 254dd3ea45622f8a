package simulate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// A service of 8 workers that needs 10 ms for a call is asked for three times what it can do.
func TestResponseTimesAreKeptAtTheirThreshold(t *testing.T) {
	t.Parallel()
	const length, capacity = time.Minute, 800
	set := rules.Set{Adaptive: []adaptive.Rule{{Strategy: adaptive.Threshold, AvgRT: 50 * ms}}}
	load := simulate.Load{
		Streams: []simulate.Stream{{Resource: "work", Rate: 3 * capacity, Until: length, Shape: simulate.Poisson, Inbound: true}},
		Servers: []simulate.Server{{
			Name: "service", Resources: []string{"work"}, Workers: 8,
			Service: simulate.Service{Mean: 10 * ms, Shape: simulate.Exponential},
		}},
	}
	var ended, took float64
	for _, s := range run(t, set, load, length).Seconds {
		if s.RTP50 != nil {
			ended += float64(s.Completed)
			took += float64(s.Completed) * *s.RTP50 // while calls wait, the median is about the mean
		}
	}
	assert.InDelta(t, 0.050, took/ended, 0.005)
	assert.Greater(t, ended, 0.95*capacity*length.Seconds())
}
