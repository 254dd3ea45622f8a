package simulate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// staged returns a load of calls of "r" that visit some servers.
func staged(stream simulate.Stream, servers ...simulate.Server) simulate.Load {
	load := streams(stream)
	for i := range servers {
		if servers[i].Resources == nil {
			servers[i].Resources = []string{"r"}
		}
	}
	load.Servers = servers
	return load
}

func TestCallsVisitServersInTheirOrder(t *testing.T) {
	t.Parallel()
	mean := func(milliseconds time.Duration) simulate.Service { return simulate.Service{Mean: milliseconds * ms} }
	for _, test := range []struct {
		name    string
		times   []float64
		timeout time.Duration
		servers []simulate.Server
		want    []string
	}{
		{
			// The second waits for the processor until 10 and for the pool until 60.
			"processor, pool, remote service",
			[]float64{0, 0, 200},
			0,
			[]simulate.Server{
				{Workers: 1, Service: mean(10), TimeSlice: 10 * ms},
				{Workers: 1, Service: mean(50)},
				{Unlimited: true, Service: mean(100)},
			},
			[]string{"160", "210", "360"},
		},
		{
			"unlimited",
			[]float64{0, 0, 0, 50},
			0,
			[]simulate.Server{{Unlimited: true, Service: mean(100), Changes: []simulate.ServiceChange{{At: 50 * ms, Service: mean(200)}}}},
			[]string{"100", "100", "100", "250"},
		},
		{
			"an unlimited server that stalls",
			[]float64{0, 30},
			0,
			[]simulate.Server{{Unlimited: true, Service: mean(10), Stalls: []simulate.Stall{{At: 5 * ms, For: 100 * ms}}}},
			[]string{"110", "115"},
		},
		{
			// The second server begins with the first call at 50, with the second at 125, and
			// with the third, which has waited for the second, at 200.
			"calls that timed out are served to the end",
			[]float64{0, 0, 70},
			140 * ms,
			[]simulate.Server{{Workers: 1, Service: mean(50)}, {Workers: 1, Service: mean(75)}},
			[]string{"125", "140!", "210!"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			load := staged(simulate.Stream{Times: at(test.times...), Timeout: test.timeout}, test.servers...)
			assert.Equal(t, test.want, ends(run(t, rules.Set{}, load, 0)))
		})
	}
}

func TestAServerHasTimesForResources(t *testing.T) {
	t.Parallel()
	load := simulate.Load{
		Streams: []simulate.Stream{
			{Resource: "a", Times: at(0, 100)}, {Resource: "b", Times: at(0, 100)}, {Resource: "c", Times: at(0)},
		},
		Servers: []simulate.Server{{
			Resources: []string{"*"}, Workers: 1, Service: simulate.Service{Mean: ms},
			Changes: []simulate.ServiceChange{{At: 50 * ms, Service: simulate.Service{Mean: 2 * ms}}},
			Services: []simulate.ResourceService{
				{
					Resources: []string{"b"}, Service: simulate.Service{Mean: 10 * ms},
					Changes: []simulate.ServiceChange{{At: 50 * ms, Service: simulate.Service{Mean: 20 * ms}}},
				},
				{Resources: []string{"b", "c"}, Service: simulate.Service{Mean: 5 * ms}},
			},
		}},
	}
	ended := make(map[string][]float64)
	for _, e := range run(t, rules.Set{}, load, 0).Events {
		ended[e.Resource] = append(ended[e.Resource], *e.End*1000)
	}
	assert.Equal(t, map[string][]float64{"a": {1, 102}, "b": {11, 122}, "c": {16}}, ended)
}

func TestAShareOfTheCallsVisitsAServer(t *testing.T) {
	t.Parallel()
	load := simulate.Load{
		Seed: 3,
		Streams: []simulate.Stream{
			{Resource: "a", Rate: 1000, Until: 10 * time.Second}, {Resource: "b", Rate: 1000, Until: 10 * time.Second},
		},
		Servers: []simulate.Server{
			{Resources: []string{"*"}, Unlimited: true, Service: simulate.Service{Mean: ms}, Share: 0.5},
			{
				Resources: []string{"*"}, Unlimited: true, Service: simulate.Service{Mean: 20 * ms}, Share: 0.3,
				Services: []simulate.ResourceService{{Resources: []string{"b"}, Share: 0.1, Service: simulate.Service{Mean: 20 * ms}}},
			},
		},
	}
	took := make(map[string]map[time.Duration]float64)
	result := run(t, rules.Set{}, load, 0)
	for _, e := range result.Events {
		if took[e.Resource] == nil {
			took[e.Resource] = make(map[time.Duration]float64)
		}
		took[e.Resource][time.Duration(nanoseconds(*e.End-e.T))]++
	}
	for resource, of := range map[string]float64{"a": 0.3, "b": 0.1} {
		assert.InDelta(t, 10_000*0.5*(1-of), took[resource][0], 200, "neither")
		assert.InDelta(t, 10_000*0.5*(1-of), took[resource][ms], 200)
		assert.InDelta(t, 10_000*0.5*of, took[resource][20*ms], 200)
		assert.InDelta(t, 10_000*0.5*of, took[resource][21*ms], 200)
		assert.Len(t, took[resource], 4)
	}
	for _, second := range result.Seconds {
		assert.Equal(t, 1000, second.Passed)
	}
	last := result.Seconds[len(result.Seconds)-2]
	assert.Less(t, last.InFlight, 25, "calls that no server serves are not under way")
	require.Equal(t, result, run(t, rules.Set{}, load, 0))
}

// A server with a guard of one place serves one call after the other. The third has waited
// too long at 100, the one after it finds a free place.
func TestWhatAServerIsAskedIsGuarded(t *testing.T) {
	t.Parallel()
	load := staged(simulate.Stream{Times: at(0, 10, 20, 200, 210), Timeout: 150 * ms, Priority: rule.PriorityHigh},
		simulate.Server{Unlimited: true, Service: simulate.Service{Mean: ms}},
		simulate.Server{Unlimited: true, Service: simulate.Service{Mean: 60 * ms}, Guard: "client"},
		simulate.Server{Unlimited: true, Service: simulate.Service{Mean: 5 * ms}},
	)
	set := rules.Set{Isolation: []isolation.Rule{
		{Resource: "client", Limit: 1, MaxWait: 79 * ms}, {Resource: "r", Limit: 3},
	}}
	result := run(t, set, load, 0)
	assert.Equal(t, []string{"66", "126", "100!", "266", "326"}, ends(result))
	assert.Equal(t, 3, result.Seconds[0].InFlight)
	assert.Equal(t, 5, result.Seconds[0].Passed, "what the guard refuses fails")

	load.Streams[0].Timeout = 30 * ms // while the second waits at the guard
	assert.Equal(t, []string{"30!", "40!", "50!", "230!", "240!"}, ends(run(t, set, load, 0)))
}

// Each server of a line takes calls in the order in which the one before has served them, as
// soon as a worker is free.
func TestALineOfServersProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		arrivals := rapid.SliceOfNDistinct(rapid.Int64Range(0, 1e9), 1, 40, rapid.ID).Draw(t, "arrivals")
		slices.Sort(arrivals)
		var stream simulate.Stream
		for _, at := range arrivals {
			stream.Times = append(stream.Times, time.Duration(at))
		}
		var line []simulate.Server
		want := arrivals
		for range rapid.IntRange(1, 4).Draw(t, "servers") {
			mean := rapid.Int64Range(1, 1e8).Draw(t, "mean")
			workers := rapid.IntRange(0, 3).Draw(t, "workers") // 0: unlimited
			line = append(line, simulate.Server{
				Workers: workers, Unlimited: workers == 0, Service: simulate.Service{Mean: time.Duration(mean)},
			})
			want = servedInTurn(want, workers, mean)
		}
		var got []int64
		for _, e := range run(t, rules.Set{}, staged(stream, line...), 0).Events {
			got = append(got, nanoseconds(*e.End))
		}
		require.Equal(t, want, got)
	})
}

// servedInTurn returns when calls end that come at the given times, in order, to workers that
// need the same time for each; to 0 workers if they need not wait.
func servedInTurn(come []int64, workers int, took int64) (end []int64) {
	for i, at := range come {
		if workers > 0 && i >= workers {
			at = max(at, end[i-workers])
		}
		end = append(end, at+took)
	}
	return end
}
