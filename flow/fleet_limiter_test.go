package flow_test

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// Under twice the load, however it is spread, the fleet passes the limit and not more.
func TestFleetPassesItsLimitUnderOverload(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	for name, test := range map[string]struct {
		rule        flow.Rule
		least, most float64 // of the limit, over ten seconds
	}{
		"lease":           {ofFleet(reject(1000), fleet.ModeLease), .97, 1.04},
		"window":          {ofFleet(reject(1000), fleet.ModeWindow), .97, 1.005},
		"fixed window":    {ofFleet(fixedWindow(1000), fleet.ModeWindow), .97, 1.005},
		"bucket":          {ofFleet(bucket(1000, 100), fleet.ModeLease), .97, 1.04},
		"waiting bucket":  {ofFleet(patient(bucket(1000, 100), 200*time.Millisecond), fleet.ModeLease), .97, 1.04},
		"throttle":        {ofFleet(throttle(1000, 200*time.Millisecond), fleet.ModeLease), .95, 1.04},
		"quick throttle":  {ofFleet(throttle(1000, 0), fleet.ModeLease), .80, 1.04},
		"asked log":       {ofFleet(reject(1000), fleet.ModeAsk), .97, 1.001},
		"asked window":    {ofFleet(fixedWindow(1000), fleet.ModeAsk), .97, 1.001},
		"asked bucket":    {ofFleet(bucket(1000, 100), fleet.ModeAsk), .97, 1.011},
		"asked throttle":  {ofFleet(throttle(1000, 200*time.Millisecond), fleet.ModeAsk), .97, 1.021},
		"asked, patient":  {ofFleet(patient(bucket(1000, 100), 100*time.Millisecond), fleet.ModeAsk), .97, 1.021},
		"shared window":   {ofFleet(reject(1000), fleet.ModeShare), .90, 1.01},
		"shared throttle": {ofFleet(throttle(1000, 100*time.Millisecond), fleet.ModeShare), .90, 1.01},
	} {
		for skew, calls := range map[string]func(i, ms int) int{
			"even": func(i, ms int) int { return (ms + i) % 2 }, // 500 a second each
			"skewed": func(i, _ int) int { // 2000 a second of one
				if i == 0 {
					return 2
				}
				return 0
			},
		} {
			t.Run(name+" "+skew, func(t *testing.T) {
				t.Parallel()
				s := newFleetScene(t, test.rule, 4)
				ms := 0
				s.run(15*time.Second, func(in *instance, i int) {
					if i == 0 {
						ms++
					}
					for range calls(i, ms) {
						in.call(1, rule.PriorityNormal)
					}
				})
				total := float64(s.total(5*time.Second, 15*time.Second)) / 10000
				assert.GreaterOrEqual(t, total, test.least)
				assert.LessOrEqual(t, total, test.most)
			})
		}
	}
}

// A throttle of the fleet spaces the calls of an instance evenly: at no time do many pass at
// once, although tokens come in batches.
func TestFleetThrottleSpacesCallsEvenly(t *testing.T) {
	t.Parallel()
	s := newFleetScene(t, ofFleet(throttle(200, time.Second), fleet.ModeLease), 2)
	s.run(10*time.Second, func(in *instance, _ int) {
		if s.clock.Now().Sub(epoch)%(4*time.Millisecond) == 0 { // 500 a second
			in.call(1, rule.PriorityNormal)
		}
	})
	for _, in := range s.instances {
		most := 0
		for i, at := range in.passed {
			n := 1
			for _, before := range in.passed[:i] {
				if at.Sub(before) < 50*time.Millisecond && at.Sub(epoch) > 5*time.Second {
					n++
				}
			}
			most = max(most, n)
		}
		assert.LessOrEqual(t, most, 10, "a twentieth of a second at the limit of the whole fleet")
	}
	assert.InDelta(t, 1000, s.total(5*time.Second, 10*time.Second), 60)
}

func TestCallWaitsForTokensNoLongerThanMaxWait(t *testing.T) {
	t.Parallel()
	const maxWait = 300 * time.Millisecond
	for name, r := range map[string]flow.Rule{
		"bucket":   patient(bucket(100, 10), maxWait),
		"throttle": throttle(100, maxWait),
	} {
		s := newFleetScene(t, ofFleet(r, fleet.ModeLease), 2)
		var calls []*fleetCall
		ended := map[*fleetCall]time.Duration{}
		s.run(5*time.Second, func(in *instance, _ int) {
			if s.clock.Now().Sub(epoch)%(4*time.Millisecond) == 0 {
				calls = append(calls, in.call(1, rule.PriorityNormal))
			}
			waits := map[*fleetCall]bool{}
			for _, each := range s.instances {
				for _, c := range each.waiting {
					waits[c] = true
				}
			}
			for _, c := range calls {
				if _, known := ended[c]; !known && !waits[c] {
					ended[c] = s.clock.Now().Sub(c.since)
				}
			}
		})
		waited := 0
		for c, d := range ended {
			assert.LessOrEqual(t, d, maxWait+time.Millisecond, name)
			if c.passed && d > 0 {
				waited++
			}
		}
		assert.Greater(t, waited, 100, "%s: calls do wait and pass", name)
	}
}

func TestMoreImportantCallsPassFirst(t *testing.T) {
	t.Parallel()
	s := newFleetScene(t, ofFleet(patient(bucket(50, 1), time.Second), fleet.ModeLease), 1)
	in := s.instances[0]
	s.run(time.Second, func(in *instance, _ int) { in.call(1, rule.PriorityNormal) })
	s.run(2*time.Second, nil)
	var low, high []*fleetCall
	s.run(20*time.Millisecond, func(in *instance, _ int) { // more than are there
		low = append(low, in.call(1, rule.PriorityLow))
	})
	for range 5 {
		high = append(high, in.call(1, rule.PriorityHigh))
	}
	s.run(150*time.Millisecond, nil)
	passed := func(calls []*fleetCall) (n int) {
		for _, c := range calls {
			if c.passed {
				n++
			}
		}
		return n
	}
	assert.Equal(t, 5, passed(high), "within the next seven or eight tokens")
	assert.Less(t, passed(low), 20)
	s.run(time.Second, nil)
	assert.Empty(t, in.waiting, "nobody is left")
}

func TestWaitingCallThatLeavesLetsOthersPass(t *testing.T) {
	t.Parallel()
	s := newFleetScene(t, ofFleet(patient(bucket(20, 1), 2*time.Second), fleet.ModeLease), 1)
	in := s.instances[0]
	s.run(500*time.Millisecond, func(in *instance, _ int) { in.call(1, rule.PriorityNormal) })
	for len(in.waiting) > 1 { // all but the last one give up, the first one first
		in.waiting[0].waiter.Leave(s.clock.Now())
		in.waiting = in.waiting[1:]
	}
	last := in.waiting[0]
	s.run(200*time.Millisecond, nil)
	assert.True(t, last.passed)
}
