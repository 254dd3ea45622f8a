package simulate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// runInstances runs a load on several instances and asks for events.
func runInstances(t T, set rules.Set, load simulate.Load, duration time.Duration, instances int) simulate.Result {
	t.Helper()
	result, err := simulate.Run(t.(*testing.T).Context(), set, load,
		simulate.Options{Duration: duration, Instances: instances, Events: true})
	require.NoError(t, err)
	return result
}

// perInstance counts the calls of each instance, by its number.
func perInstance(events []simulate.Event) map[int]int {
	counts := make(map[int]int)
	for _, e := range events {
		counts[e.Instance]++
	}
	return counts
}

func TestCallsAreDealtEvenly(t *testing.T) {
	t.Parallel()
	load := streams(simulate.Stream{Rate: 1000, Shape: simulate.Poisson}, simulate.Stream{Resource: "other", Rate: 100})
	alone := run(t, rules.Set{}, load, 10*time.Second)
	result := runInstances(t, rules.Set{}, load, 10*time.Second, 8)
	require.Len(t, result.Events, len(alone.Events))
	for i := range alone.Events {
		assert.Equal(t, 0, alone.Events[i].Instance)
		require.InDelta(t, alone.Events[i].T, result.Events[i].T, 0, "the calls are the same")
	}
	counts := perInstance(result.Events)
	require.Len(t, counts, 8)
	for number, count := range counts {
		assert.InDelta(t, len(result.Events)/8, count, 2, "instance %d: of each stream, one call in eight", number)
	}
}

// An instance does not always get the same of the values that are used in turn.
func TestDealingDoesNotFollowAttributes(t *testing.T) {
	t.Parallel()
	load := streams(simulate.Stream{Rate: 1000, Attrs: []simulate.Attr{{Name: "user", Values: []any{"a", "b"}}}})
	result := runInstances(t, rules.Set{}, load, 2*time.Second, 2)
	counts := make(map[string]int)
	for _, e := range result.Events {
		counts[fmt.Sprint(e.Instance, e.Value)]++
	}
	require.Len(t, counts, 4)
	for which, count := range counts {
		assert.InDelta(t, 500, count, 100, which)
	}
}

func TestSkewSendsAShareToTheFirstInstance(t *testing.T) {
	t.Parallel()
	for _, skew := range []float64{0, 0.1, 0.9, 1} {
		load := streams(simulate.Stream{Rate: 1000, Shape: simulate.Poisson})
		load.Fleet.Skew = &skew
		counts := perInstance(runInstances(t, rules.Set{}, load, 10*time.Second, 5).Events)
		assert.InDelta(t, 10_000*skew, counts[1], 300)
		for number := 2; number <= 5; number++ {
			assert.InDelta(t, 10_000*(1-skew)/4, counts[number], 100, "instance %d", number)
		}
		_, err := simulate.Run(t.Context(), rules.Set{}, load, simulate.Options{Duration: time.Second})
		require.NoError(t, err, "one instance gets them all")
	}
}

func TestALimitOfEachInstanceHoldsForEach(t *testing.T) {
	t.Parallel()
	set := flowRules(flow.Rule{Limit: 10})
	load := streams(simulate.Stream{Rate: 1000})
	result := runInstances(t, set, load, 3*time.Second, 20)
	for _, s := range result.Seconds {
		assert.InDelta(t, 200, *s.Ceiling, 0)
		assert.Equal(t, 200, s.Passed)
	}
	assert.Nil(t, result.Fleet)
	assert.Nil(t, result.Backend)
	skewed := load
	skewed.Fleet.Skew = number(1)
	assert.Equal(t, []int{10, 10, 10}, runInstances(t, set, skewed, 3*time.Second, 20).Passed("r"))
}

// The workers of a server belong to an instance: four instances with two workers each serve
// eight calls at once.
func TestServersBelongToInstances(t *testing.T) {
	t.Parallel()
	load := streams(simulate.Stream{Times: make([]time.Duration, 8)})
	load.Servers = []simulate.Server{{Resources: []string{"r"}, Workers: 2, Service: simulate.Service{Mean: 100 * time.Millisecond}}}
	for _, e := range runInstances(t, rules.Set{}, load, time.Second, 4).Events {
		assert.InDelta(t, 0.1, *e.End, 0)
	}
	ends := 0.0
	for _, e := range run(t, rules.Set{}, load, time.Second).Events {
		ends = max(ends, *e.End)
	}
	assert.InDelta(t, 0.4, ends, 0)
}

func TestRulesOfEachInstanceHaveTheirStates(t *testing.T) {
	t.Parallel()
	set := rules.Set{Breaker: []breaker.Rule{{
		Resource: "r", Strategy: breaker.ErrorCount, Threshold: 5, OpenFor: 10 * time.Second,
	}}}
	load := streams(simulate.Stream{Rate: 100, Fails: 1})
	result := runInstances(t, set, load, 5*time.Second, 3)
	var opened []int
	for _, s := range result.States {
		if assert.Equal(t, "open", s.To) {
			opened = append(opened, s.Instance)
		}
	}
	slices.Sort(opened)
	assert.Equal(t, []int{1, 2, 3}, opened)
	for _, s := range run(t, set, load, 5*time.Second).States {
		assert.Zero(t, s.Instance)
	}
}

// Limits that rules find themselves are added up, and so is what waits and is shed.
func TestLimitsAreTheSumsOfAllInstances(t *testing.T) {
	t.Parallel()
	set := rules.Set{Adaptive: []adaptive.Rule{{Resource: "r"}}}
	load := streams(simulate.Stream{Rate: 400, ServiceTime: 10 * time.Millisecond})
	alone := run(t, set, streams(simulate.Stream{Rate: 100, ServiceTime: 10 * time.Millisecond}), 3*time.Second)
	result := runInstances(t, set, load, 3*time.Second, 4)
	require.Len(t, result.Limits, 3, "one row a second")
	assert.InDelta(t, 4**alone.Limits[0].Limit, *result.Limits[0].Limit, 0, "all begin as one alone does")
}

func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	load := streams(
		simulate.Stream{Rate: 500, Shape: simulate.Poisson, Fails: 0.2, Retries: 1, Attrs: []simulate.Attr{{Name: "user", Count: 10, Shape: simulate.Zipf}}},
		simulate.Stream{Resource: "pay", Rate: 300, Shape: simulate.Poisson})
	load.Servers = []simulate.Server{{
		Resources: []string{"pay"}, Workers: 2, Service: simulate.Service{Mean: 10 * time.Millisecond, Shape: simulate.Exponential},
	}}
	set := rules.Set{Flow: flowRules(flow.Rule{Limit: 50}).Flow, Adaptive: []adaptive.Rule{{Resource: "pay"}}}
	marshal := func(seed uint64) string {
		load.Seed = seed
		data, err := json.Marshal(runInstances(t, set, load, 5*time.Second, 7))
		require.NoError(t, err)
		return string(data)
	}
	first := marshal(1)
	assert.Equal(t, first, marshal(1))
	assert.NotEqual(t, first, marshal(2))
}

func TestMistakesInAFleetAreAllReported(t *testing.T) {
	t.Parallel()
	load := streams(simulate.Stream{Rate: 1})
	load.Fleet = simulate.Fleet{
		Latency: simulate.Service{Shape: simulate.Lognormal, Mean: -1},
		Loss:    1.5,
		Outages: []simulate.Outage{
			{From: 5 * time.Second, Until: 3 * time.Second},
			{From: 2 * time.Second},
			{From: -1, Until: 2000 * time.Hour},
			{From: 4 * time.Second, Until: 5 * time.Second},
		},
		Skew: number(-0.1),
	}
	_, err := simulate.Run(t.Context(), rules.Set{}, load, simulate.Options{Duration: time.Second, Instances: simulate.MaxInstances + 1})
	var faults simulate.Faults
	require.ErrorAs(t, err, &faults)
	var lines []string
	for _, f := range faults {
		assert.Equal(t, -1, f.Stream)
		lines = append(lines, f.Field+" "+f.Message)
	}
	assert.Equal(t, []string{
		"fleet.latency.mean is -1ns: must be longer than 0s and at most 1080h0m0s",
		"fleet.latency.p99 is missing: a lognormal service time needs the time that 99 of 100 calls stay within",
		"fleet.loss is 1.5: must be a share from 0 to 1",
		"fleet.skew is -0.1: must be a share from 0 to 1",
		"fleet.outages[0].until is 3s: must be later than from (5s) and at most 1080h0m0s",
		"fleet.outages[1].from is 2s: must not be before the outage before it is over (3s)",
		"fleet.outages[1].until is missing: say when the backend answers again",
		"fleet.outages[2].from is -1ns: must be from 0s to 1080h0m0s",
		"fleet.outages[2].until is 2000h0m0s: must be later than from (-1ns) and at most 1080h0m0s",
		"fleet.outages[3].from is 4s: must not be before the outage before it is over (2000h0m0s)",
		"instances is 1001: must be from 1 to 1000",
	}, lines)

	load = streams(simulate.Stream{Rate: 1})
	load.Fleet.Latency.Shape = simulate.Exponential
	_, err = simulate.Run(t.Context(), rules.Set{}, load, simulate.Options{Duration: time.Second})
	require.EqualError(t, err, "simulate: fleet.latency.mean is missing: say how long a reply takes")
}

func TestInstancesTimesResourcesAreBounded(t *testing.T) {
	t.Parallel()
	var load simulate.Load
	for i := range 101 {
		load.Streams = append(load.Streams, simulate.Stream{Resource: fmt.Sprint(i), Rate: 1})
	}
	_, err := simulate.Run(t.Context(), rules.Set{}, load, simulate.Options{Duration: time.Second, Instances: 1000})
	require.EqualError(t, err,
		"simulate: instances is 1000: with 101 resources on each that is more than 100000 in all; lower one of the two")
}
