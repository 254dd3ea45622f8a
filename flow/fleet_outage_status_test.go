package flow_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// In an outage the status of a limit shows what OnOutage lets pass, which is what passes when
// calls ask for more.
func TestStatusInAnOutageShowsWhatPasses(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	t.Parallel()
	for name, r := range map[string]flow.Rule{
		"lease":    ofFleet(reject(1000), fleet.ModeLease),
		"few":      ofFleet(reject(20), fleet.ModeLease),
		"window":   ofFleet(reject(1000), fleet.ModeWindow),
		"fixed":    ofFleet(fixedWindow(1000), fleet.ModeWindow),
		"throttle": ofFleet(throttle(1000, 50*time.Millisecond), fleet.ModeLease),
		"ask":      ofFleet(reject(1000), fleet.ModeAsk),
		"share":    ofFleet(reject(1000), fleet.ModeShare),
	} {
		for _, onOutage := range []fleet.OnOutage{fleet.OutageLast, fleet.OutageShare, fleet.OutageOpen, fleet.OutageClosed} {
			r := r // one for each of the tests that run at once
			r.Fleet.OnOutage = onOutage
			t.Run(name+"/"+string(onOutage), func(t *testing.T) {
				t.Parallel()
				s := newFleetScene(t, r, 4)
				calls := func(in *instance, i int) {
					for range 1 + i { // the first one has a tenth of the demand
						in.call(1, rule.PriorityNormal)
					}
				}
				s.run(6*time.Second, calls)
				s.isDown = true
				s.run(2*time.Second, calls)
				const counted = 3 * time.Second
				for _, in := range s.instances {
					in.passed = nil
				}
				s.run(counted, calls)
				for i, in := range s.instances {
					passed := float64(len(in.passed)) / counted.Seconds()
					status := in.limiter.Status(s.clock.Now())
					require.True(t, status.Fleet.Outage)
					perWindow := status.Fleet.Granted * status.Quota.Window.Seconds()
					switch onOutage {
					case fleet.OutageOpen:
						assert.True(t, math.IsInf(status.Fleet.Granted, 1))
						assert.True(t, math.IsInf(status.Quota.Effective, 1))
						assert.GreaterOrEqual(t, passed, 1000*float64(1+i)*0.99)
					case fleet.OutageClosed:
						assert.Zero(t, status.Fleet.Granted)
						assert.Zero(t, status.Quota.Effective)
						assert.Zero(t, passed)
					default:
						assert.InDelta(t, passed, status.Fleet.Granted, 0.1*passed+1, "instance %d", i)
						assert.InDelta(t, perWindow, status.Quota.Effective, 1e-6*perWindow)
						assert.Positive(t, status.Fleet.Granted)
					}
				}
				s.isDown = false
				s.run(6*time.Second, calls)
				assert.False(t, s.instances[0].limiter.Status(s.clock.Now()).Fleet.Outage)
			})
		}
	}
}

// With onOutage last, an instance of which nothing passed before lets one call pass whenever
// an even share would have.
func TestStatusOfALimitThatWasQuietBeforeAnOutageShowsWhatPasses(t *testing.T) {
	t.Parallel()
	r := ofFleet(reject(20), fleet.ModeLease)
	s := newFleetScene(t, r, 2)
	busy := func(in *instance, i int) {
		if i == 0 || s.isDown {
			in.call(1, rule.PriorityNormal)
		}
	}
	s.run(6*time.Second, busy)
	s.isDown = true
	s.run(2*time.Second, busy)
	quiet := s.instances[1]
	quiet.passed = nil
	s.run(5*time.Second, busy)
	assert.InDelta(t, float64(len(quiet.passed))/5, quiet.limiter.Status(s.clock.Now()).Fleet.Granted, 1)
	assert.NotEmpty(t, quiet.passed)
}

// A limit of 0 blocks all calls, whatever is to happen in an outage.
func TestLimitOfNothingBlocksInAnOutageToo(t *testing.T) {
	t.Parallel()
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeWindow, fleet.ModeAsk, fleet.ModeShare} {
		r := ofFleet(reject(0), mode)
		r.Fleet.OnOutage = fleet.OutageOpen
		s := newFleetScene(t, r, 1)
		calls := func(in *instance, _ int) { in.call(1, rule.PriorityNormal) }
		s.isDown = true
		s.run(2*time.Second, calls)
		s.isDown = false
		s.run(time.Second, calls)
		s.isDown = true
		s.run(2*time.Second, calls)
		assert.Empty(t, s.instances[0].passed, mode)
		status := s.instances[0].limiter.Status(s.clock.Now())
		assert.True(t, status.Fleet.Outage, mode)
		assert.Zero(t, status.Fleet.Granted, mode)
		assert.Zero(t, status.Quota.Effective, mode)
	}
}
