package simulate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

func TestCallsWaitForAPlaceByTheirPriority(t *testing.T) {
	t.Parallel()
	set := rules.Set{Isolation: []isolation.Rule{{Resource: "r", Limit: 1, MaxWait: time.Second, MaxQueue: 4}}}
	load := streams(
		simulate.Stream{Times: at(0, 10, 20), ServiceTime: 100 * ms, Priority: rule.PriorityLow},
		simulate.Stream{Times: at(30, 40), ServiceTime: 100 * ms, Priority: rule.PriorityHigh},
		simulate.Stream{Times: at(50, 60), ServiceTime: 100 * ms}, // displace both low calls
		simulate.Stream{Times: at(70), ServiceTime: 100 * ms, Priority: rule.PrioritySheddable},
	)
	result := run(t, set, load, 2*time.Second)
	assert.Equal(t, []string{"100", "-", "-", "200", "300", "400", "500", "-"}, ends(result))
	assert.Equal(t, "low", result.Events[0].Priority)
	assert.Equal(t, "normal", result.Events[5].Priority)
}

func TestCallsPassAThrottleByTheirPriority(t *testing.T) {
	t.Parallel()
	set := rules.Set{Flow: []flow.Rule{{Resource: "r", Limit: 10, Algorithm: flow.Throttle, MaxWait: 350 * ms}}}
	load := streams(
		simulate.Stream{Times: at(0, 10, 20, 30, 40), Priority: rule.PriorityLow}, // the last one is refused at once
		simulate.Stream{Times: at(150), Priority: rule.PriorityHigh},              // takes the place of the call of 20
	)
	result := run(t, set, load, time.Second)
	var passed []string
	for _, e := range result.Events {
		passed = append(passed, fmt.Sprintf("%s %.0f: %s %.0f", e.Priority, e.T*1000, e.Outcome, (e.T+e.Wait)*1000))
	}
	assert.Equal(t, []string{
		"low 0: pass 0", "low 10: pass 100", "low 20: pass 300",
		"low 30: block 300", // would have had to wait until 400
		"low 40: block 40", "high 150: pass 200",
	}, passed)
}

// A server with eight workers behind a rule that lets eight calls in, at three times what
// it can do: the most important half of the calls hardly notices.
func TestImportantCallsPassWhenAServerIsOverloaded(t *testing.T) {
	t.Parallel()
	set := rules.Set{Isolation: []isolation.Rule{{Resource: "r", Limit: 8, MaxWait: time.Second, MaxQueue: 20}}}
	offered := func(rate float64, priority rule.Priority) simulate.Stream {
		return simulate.Stream{Resource: "r", Rate: rate, Until: 10 * time.Second, Shape: simulate.Poisson, Priority: priority}
	}
	load := simulate.Load{
		Seed:    1,
		Streams: []simulate.Stream{offered(400, rule.PriorityHigh), offered(1000, rule.PriorityNormal), offered(1000, rule.PriorityLow)},
		Servers: []simulate.Server{{
			Name: "s", Resources: []string{"r"}, Workers: 8,
			Service: simulate.Service{Mean: 10 * ms, Shape: simulate.Exponential},
		}},
	}
	passed, came := map[string]int{}, map[string]int{}
	for _, e := range run(t, set, load, 10*time.Second).Events {
		came[e.Priority]++
		if e.Outcome == simulate.Pass {
			passed[e.Priority]++
		}
	}
	assert.Equal(t, came["high"], passed["high"])
	assert.InDelta(t, 8000, passed["high"]+passed["normal"]+passed["low"], 300)
	assert.Less(t, passed["low"], 500)
}
