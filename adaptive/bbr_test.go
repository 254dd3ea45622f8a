package adaptive_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/rule"
)

// busyService calls a service that does 1000 calls a second, then three times as many.
func busyService(t *testing.T, r adaptive.Rule) *scene {
	r.Strategy = adaptive.BBR
	s := newScene(t, r)
	s.signal(rule.SignalCPU, 0.5)
	s.run(3*time.Second, nil, stream{rate: 1000, takes: 10 * time.Millisecond})
	assert.InDelta(t, 11, s.gauge("limit"), 0, "1000/s × 10 ms, and one more")
	assert.InDelta(t, 0.01, s.gauge("baseline_seconds"), 0.0005)
	return s
}

func TestBBRLimitsCallsOnlyWhileTheCPUIsBusy(t *testing.T) {
	t.Parallel()
	s := busyService(t, adaptive.Rule{})
	more := stream{rate: 3000, takes: 500 * time.Millisecond}
	s.signal(rule.SignalCPU, 0.81)
	out := s.run(400*time.Millisecond, nil, more)
	assert.Less(t, out[0].passed, 3000/10+15, "it sheds from the next update on")

	s.signal(rule.SignalCPU, 0.5)
	out = s.run(800*time.Millisecond, nil, more)
	assert.Less(t, out[0].passed, 30, "within a second after")
	s.run(4*time.Second, nil, more)
	out = s.run(time.Second, nil, more)
	assert.InDelta(t, 1, out[0].share(), 0)
}

func TestBBRKeepsItsBounds(t *testing.T) {
	t.Parallel()
	s := busyService(t, adaptive.Rule{MinLimit: 5, MaxLimit: 11})
	s.signal(rule.SignalCPU, 1)
	s.run(2*time.Second, nil, stream{rate: 3000, takes: 30 * time.Millisecond})
	assert.InDelta(t, 11, s.gauge("limit"), 0)
	s.run(12*time.Second, nil, stream{rate: 5, takes: 10 * time.Millisecond})
	assert.InDelta(t, 5, s.gauge("limit"), 0)
}

// The CPU is busy before any call has ended: the limit is not one or two calls.
func TestBBRBeginsWithTwenty(t *testing.T) {
	t.Parallel()
	s := newScene(t, adaptive.Rule{Strategy: adaptive.BBR})
	s.signal(rule.SignalCPU, 1)
	assert.True(t, math.IsNaN(s.gauge("baseline_seconds")))
	s.run(500*time.Millisecond, nil, stream{rate: 400, takes: time.Second})
	assert.InDelta(t, 20, s.gauge("limit"), 0)
}

// If all calls time out, no more are let in than the service may end.
func TestBBRGivesWayWhenMostCallsFail(t *testing.T) {
	t.Parallel()
	s := busyService(t, adaptive.Rule{})
	s.signal(rule.SignalCPU, 1)
	s.run(3*time.Second, nil, stream{rate: 1000, takes: 200 * time.Millisecond, fails: true})
	assert.InDelta(t, 2, s.gauge("limit"), 0)
	s.run(10*time.Second, nil, stream{rate: 1000, takes: 10 * time.Millisecond})
	assert.Greater(t, s.gauge("limit"), 5.)
}
