package simulate_test

import (
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

func sqrt(v float64) float64 { return math.Sqrt(v) }

// served returns a load of calls of "r" that a server serves.
func served(server simulate.Server, list ...simulate.Stream) simulate.Load {
	load := streams(list...)
	server.Resources = []string{"r"}
	load.Servers = []simulate.Server{server}
	return load
}

func TestAServerServesFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	mean := simulate.Service{Mean: 100 * ms}
	for _, test := range []struct {
		name   string
		server simulate.Server
		times  []float64
		want   []string
	}{
		{"one worker", simulate.Server{Workers: 1, Service: mean}, []float64{0, 0, 50, 400}, []string{"100", "200", "300", "500"}},
		{"two workers", simulate.Server{Workers: 2, Service: mean}, []float64{0, 10, 20, 30, 40}, []string{"100", "110", "200", "210", "300"}},
		{"a worker that is free again", simulate.Server{Workers: 1, Service: mean}, []float64{0, 100, 200}, []string{"100", "200", "300"}},
		{
			"slowed down by those that wait",
			simulate.Server{Workers: 1, Service: mean, Slowdown: 0.1},
			[]float64{0, 10, 20, 30},
			// Three wait when the first ends and two, one and none when the next begin.
			[]string{"100", "220", "330", "430"},
		},
		{
			"changes",
			simulate.Server{Workers: 1, Service: mean, Changes: []simulate.ServiceChange{
				{At: 150 * ms, Service: simulate.Service{Mean: 10 * ms}}, {At: 300 * ms, Service: mean},
			}},
			[]float64{0, 60, 120, 295, 300, 500},
			[]string{"100", "200", "210", "305", "405", "600"},
		},
		{
			"stalls",
			simulate.Server{Workers: 2, Service: mean, Stalls: []simulate.Stall{
				{At: 50 * ms, For: 25 * ms}, {At: 75 * ms, For: 25 * ms}, {At: 300 * ms, For: 100 * ms},
			}},
			// The first two stand still for 50 ms, the next two begin then; one arrives in
			// the midst of a stall, one ends as it begins.
			[]float64{0, 10, 20, 30, 350, 600},
			[]string{"150", "160", "250", "260", "500", "700"},
		},
		{
			"time slices",
			simulate.Server{Workers: 1, Service: mean, TimeSlice: 40 * ms},
			// At 80 the second has been served for a slice. It comes before the third, which
			// arrives then, and behind the first.
			[]float64{0, 10, 80, 500},
			[]string{"220", "240", "300", "600"},
		},
		{
			"a quota",
			simulate.Server{Workers: 1, Service: mean, TimeSlice: 10 * ms, Quota: simulate.Quota{Time: 50 * ms, Period: 200 * ms}},
			[]float64{0, 420, 1000}, // each has 50 ms in the period in which it arrives, and the rest in the next
			[]string{"250", "650", "1250"},
		},
		{
			"a quota of two workers",
			simulate.Server{
				Workers: 2, Service: simulate.Service{Mean: 40 * ms}, TimeSlice: 10 * ms,
				Quota: simulate.Quota{Time: 50 * ms, Period: 100 * ms},
			},
			[]float64{0, 0}, // the first has three slices and the second two until the quota is used up
			[]string{"110", "120"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := run(t, rules.Set{}, served(test.server, simulate.Stream{Times: at(test.times...)}), 0)
			assert.Equal(t, test.want, ends(got))
		})
	}
}

func TestAServerGoesOnWithACallThatTimedOut(t *testing.T) {
	t.Parallel()
	server := simulate.Server{Workers: 1, Service: simulate.Service{Mean: 100 * ms}}
	stream := simulate.Stream{Times: at(0, 10, 20, 500), Timeout: 150 * ms}
	// The second is in service from 100 to 200 and times out at 160, the third
	// waits until 200, times out at 170 and is served nevertheless.
	result := run(t, rules.Set{}, served(server, stream), 0)
	assert.Equal(t, []string{"100", "160!", "170!", "600"}, ends(result))
	assert.Equal(t, 3, result.Seconds[0].InFlight)
	next := served(server, simulate.Stream{Times: at(0, 10, 20, 250), Timeout: 150 * ms})
	assert.Equal(t, []string{"100", "160!", "170!", "400"}, ends(run(t, rules.Set{}, next, 0)),
		"its worker is busy until 300")
}

// The ends of calls are those of a queue with some workers, computed from the
// time at which each worker is free again.
func TestServersWorkLikeAQueueWithWorkers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		server := simulate.Server{
			Workers:  rapid.IntRange(1, 6).Draw(t, "workers"),
			Slowdown: rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "slowdown"),
			Service:  simulate.Service{Mean: time.Duration(rapid.IntRange(1, 300).Draw(t, "mean")) * ms},
		}
		var load simulate.Load
		for range rapid.IntRange(1, 3).Draw(t, "streams") {
			load.Streams = append(load.Streams, simulate.Stream{
				Rate: rapid.Float64Range(1, 40).Draw(t, "rate"), Shape: simulate.Poisson,
				Timeout: time.Duration(rapid.IntRange(0, 400).Draw(t, "timeout")) * ms,
			})
		}
		timeouts := load.Streams[0].Timeout // one for all: events do not name their stream
		for i := range load.Streams {
			load.Streams[i].Timeout = timeouts
		}
		load = served(server, load.Streams...)
		load.Seed = rapid.Uint64().Draw(t, "seed")
		events := run(t, rules.Set{}, load, 3*time.Second).Events
		free := make([]int64, server.Workers)
		begins := make([]int64, len(events))
		for i, e := range events {
			worker := slices.Index(free, slices.Min(free))
			begins[i] = max(nanoseconds(e.T), free[worker])
			waiting := 0 // when this one begins: those that have arrived before and come later in the line
			for _, other := range events[i+1:] {
				if arrived := nanoseconds(other.T); arrived < begins[i] {
					waiting++
				}
			}
			free[worker] = begins[i] + int64(math.Round(float64(server.Service.Mean)*(1+server.Slowdown*float64(waiting))))
			end, failed := free[worker], false
			if deadline := nanoseconds(e.T) + int64(timeouts); timeouts > 0 && deadline < end {
				end, failed = deadline, true
			}
			require.Equal(t, end, nanoseconds(*e.End), "call %d", i)
			require.Equal(t, failed, e.Failed, "call %d", i)
		}
	})
}

// Calls share one worker by the millisecond: each has a slice, then the next has one.
func TestTimeSlicesAreTakenInTurn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		mean, slice := rapid.IntRange(1, 60).Draw(t, "mean"), rapid.IntRange(1, 40).Draw(t, "slice")
		arrivals := rapid.SliceOfN(rapid.IntRange(0, 500), 1, 20).Draw(t, "arrivals")
		slices.Sort(arrivals)
		server := simulate.Server{
			Workers: 1, Service: simulate.Service{Mean: time.Duration(mean) * ms}, TimeSlice: time.Duration(slice) * ms,
		}
		var stream simulate.Stream
		for _, arrived := range arrivals {
			stream.Times = append(stream.Times, time.Duration(arrived)*ms)
		}
		want := make([]string, len(arrivals))
		var line []int // the calls that are there, the one in service first
		left, next := slices.Repeat([]int{mean}, len(arrivals)), 0
		for now, served := 0, 0; next < len(arrivals) || len(line) > 0; now++ {
			if len(line) > 0 && now > 0 && served > 0 { // the millisecond before was for the first
				first := line[0]
				switch {
				case left[first] == 0:
					want[first], line, served = strconv.Itoa(now), line[1:], 0
				case served == slice:
					line, served = append(line[1:], first), 0
				}
			}
			for ; next < len(arrivals) && arrivals[next] == now; next++ {
				line = append(line, next)
			}
			if len(line) > 0 {
				left[line[0]]--
				served++
			}
		}
		require.Equal(t, want, ends(run(t, rules.Set{}, served(server, stream), 0)))
	})
}

func TestQuotaIsUsedUpAndNotExceeded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		server := simulate.Server{
			Workers:   rapid.IntRange(1, 4).Draw(t, "workers"),
			Service:   simulate.Service{Mean: time.Duration(rapid.IntRange(1, 30).Draw(t, "mean")) * ms, Shape: simulate.Exponential},
			TimeSlice: time.Duration(rapid.IntRange(1, 20).Draw(t, "slice")) * ms,
			Quota:     simulate.Quota{Period: 100 * ms},
		}
		server.Quota.Time = time.Duration(rapid.IntRange(1, 100*server.Workers-1).Draw(t, "quota")) * ms
		const calls = 500
		load := served(server, simulate.Stream{Times: make([]time.Duration, calls)})
		load.Seed = rapid.Uint64().Draw(t, "seed")
		last := 0.0
		for _, e := range run(t, rules.Set{}, load, 0).Events {
			last = max(last, *e.End)
		}
		unbounded := load
		unbounded.Servers = slices.Clone(load.Servers)
		unbounded.Servers[0].Quota, unbounded.Servers[0].Workers = simulate.Quota{}, 1
		work := 0.0 // of all calls: the same random times, one after the other
		for _, e := range run(t, rules.Set{}, unbounded, 0).Events {
			work = max(work, *e.End)
		}
		// Slices that begin in one period may end in the next, and workers have none at the end.
		share := float64(server.Quota.Time) / float64(server.Quota.Period)
		most := float64(server.Workers) * (server.TimeSlice + server.Quota.Period).Seconds()
		require.InDelta(t, work/share, last, (most+server.Quota.Time.Seconds())/share)
	})
}

func TestACallThatEndsAtItsTimeoutIsInTime(t *testing.T) {
	t.Parallel()
	server := simulate.Server{Workers: 1, Service: simulate.Service{Mean: 100 * ms}}
	result := run(t, rules.Set{}, served(server, simulate.Stream{Times: at(0, 0), Timeout: 200 * ms}), 0)
	assert.Equal(t, []string{"100", "200"}, ends(result))
}

func TestALongQueueIsServedInOrder(t *testing.T) {
	t.Parallel()
	const calls = 5000
	load := served(simulate.Server{Workers: 1, Service: simulate.Service{Mean: ms}},
		simulate.Stream{Times: make([]time.Duration, calls)}, simulate.Stream{Times: at(2500.5)})
	events := run(t, rules.Set{}, load, 0).Events
	require.Len(t, events, calls+1)
	for i, e := range events {
		require.Equal(t, int64(i+1)*1e6, nanoseconds(*e.End), "call %d", i)
	}
}

func TestServersHaveTheirOwnResources(t *testing.T) {
	t.Parallel()
	load := simulate.Load{
		Streams: []simulate.Stream{
			{Resource: "pay", Times: at(0, 0)},
			{Resource: "orders:create", Times: at(0, 0)},
			{Resource: "orders:list", Times: at(0)},
			{Resource: "free", Times: at(0, 0), ServiceTime: 7 * ms},
		},
		Servers: []simulate.Server{
			{Name: "bank", Resources: []string{"pay"}, Workers: 1, Service: simulate.Service{Mean: 100 * ms}},
			{Name: "db", Resources: []string{"orders:*"}, Workers: 1, Service: simulate.Service{Mean: 10 * ms}},
		},
	}
	assert.Equal(t, []string{"100", "200", "10", "20", "30", "7", "7"}, ends(run(t, rules.Set{}, load, 0)))
}

func TestCallsFailAfterTheirService(t *testing.T) {
	t.Parallel()
	server := simulate.Server{Workers: 1, Service: simulate.Service{Mean: 100 * ms}}
	result := run(t, rules.Set{}, served(server, simulate.Stream{Times: at(0, 0), Fails: 0.5}), 0)
	assert.Equal(t, []string{"100", "200!"}, ends(result))
}

// responseTimes returns the sorted response times of a server that is never busy.
func responseTimes(t *testing.T, seed uint64, server simulate.Server) []float64 {
	t.Helper()
	server.Workers = simulate.MaxWorkers
	load := served(server, simulate.Stream{Rate: 5000, Until: 10 * time.Second})
	load.Seed = seed
	var times []float64
	for _, e := range run(t, rules.Set{}, load, 0).Events {
		times = append(times, *e.End-e.T)
	}
	slices.Sort(times)
	return times
}

func TestServiceTimesFollowTheirDistribution(t *testing.T) {
	t.Parallel()
	const n, mean = 50_000, 0.01
	quantile := func(times []float64, q float64) float64 { return times[int(q*n)] }
	average := func(times []float64) float64 {
		sum := 0.0
		for _, v := range times {
			sum += v
		}
		return sum / n
	}
	exponential := responseTimes(t, 1, simulate.Server{Service: simulate.Service{Mean: 10 * ms, Shape: simulate.Exponential}})
	assert.InEpsilon(t, mean, average(exponential), 0.02)
	assert.InEpsilon(t, mean*math.Ln2, quantile(exponential, 0.5), 0.02)
	assert.InEpsilon(t, mean*math.Log(100), quantile(exponential, 0.99), 0.04)

	lognormal := simulate.Service{Mean: 10 * ms, Shape: simulate.Lognormal, P99: 60 * ms}
	times := responseTimes(t, 1, simulate.Server{Service: lognormal})
	assert.InEpsilon(t, mean, average(times), 0.03)
	assert.InEpsilon(t, 0.06, quantile(times, 0.99), 0.05)
	assert.Equal(t, times, responseTimes(t, 1, simulate.Server{Service: lognormal}), "the same seed")
	assert.NotEqual(t, times, responseTimes(t, 2, simulate.Server{Service: lognormal}), "another seed")

	changed := responseTimes(t, 1, simulate.Server{
		Service: lognormal, Changes: []simulate.ServiceChange{{Service: simulate.Service{Mean: 40 * ms}}},
	})
	assert.InEpsilon(t, 4*average(times), average(changed), 1e-6, "the ratio of p99 to the mean stays")
	assert.InEpsilon(t, 4*quantile(times, 0.99), quantile(changed, 0.99), 1e-6)
}

// The mean response time of M/M/1 at a utilisation of one half is twice that of
// the service; the slowdown of those that wait would make it longer.
func TestAQueueIsAsLongAsTheoryHasIt(t *testing.T) {
	t.Parallel()
	load := served(
		simulate.Server{Workers: 1, Service: simulate.Service{Mean: 10 * ms, Shape: simulate.Exponential}},
		simulate.Stream{Rate: 50, Shape: simulate.Poisson, Until: 2000 * time.Second},
	)
	sum, events := 0.0, run(t, rules.Set{}, load, 0).Events
	for _, e := range events {
		sum += *e.End - e.T
	}
	assert.InEpsilon(t, 0.02, sum/float64(len(events)), 0.05)
}

func TestWorkThatWouldNeverEndIsAnError(t *testing.T) {
	t.Parallel()
	load := served(simulate.Server{
		Workers: 1, Slowdown: simulate.MaxSlowdown, Service: simulate.Service{Mean: simulate.MaxDuration},
	}, simulate.Stream{Times: make([]time.Duration, 1000)})
	_, err := simulate.Run(t.Context(), rules.Set{}, load, simulate.Options{})
	require.ErrorContains(t, err, `would be busy for more than 100 years: shorten its service or lower the rates`)
}

// At one instant calls end first, then timeouts and waits run out, then calls
// arrive.
func TestEventsOfOneInstantComeInTheirOrder(t *testing.T) {
	t.Parallel()
	t.Run("a call that ends leaves its worker to one that arrives", func(t *testing.T) {
		t.Parallel()
		load := served(simulate.Server{Workers: 1, Service: simulate.Service{Mean: 100 * ms}, Slowdown: 1},
			simulate.Stream{Times: at(100, 200)}, simulate.Stream{Times: at(0)})
		assert.Equal(t, []string{"100", "200", "300"}, ends(run(t, rules.Set{}, load, 0)), "none ever waits")
	})
	t.Run("a call that waits passes before one that arrives", func(t *testing.T) {
		t.Parallel()
		set := flowRules(
			flow.Rule{Name: "spaced", Limit: 10, Algorithm: flow.TokenBucket, Burst: 1, MaxWait: 100 * ms},
			flow.Rule{Name: "counted", Match: "*", Shared: true, Limit: 2, Window: 10 * time.Second},
		)
		load := simulate.Load{Streams: []simulate.Stream{
			{Resource: "s", Times: at(100)}, {Resource: "r", Times: at(0, 0)},
		}}
		result := run(t, set, load, 0)
		assert.Equal(t, []string{simulate.Pass, simulate.Pass, simulate.Block}, outcomes(result),
			"the second of r passes at 100 ms, after a wait of exactly maxWait, and the window is full")
	})
	t.Run("streams are in their order", func(t *testing.T) {
		t.Parallel()
		load := served(simulate.Server{Workers: 1, Service: simulate.Service{Mean: 10 * ms}},
			simulate.Stream{Times: at(0), Origin: "first"}, simulate.Stream{Times: at(0), Origin: "second"})
		assert.Equal(t, []string{"10", "20"}, ends(run(t, rules.Set{}, load, 0)))
	})
}

func TestBimodalServiceHasTwoTimesAndItsMean(t *testing.T) {
	t.Parallel()
	server := simulate.Server{Workers: 100, Service: simulate.Service{
		Mean: 10 * ms, Shape: simulate.Bimodal, SlowShare: 0.1, SlowFactor: 41, // 2 ms and 82 ms
	}}
	const calls = 20_000
	counts := make(map[string]int)
	_, err := simulate.Run(t.Context(), rules.Set{}, served(server, simulate.Stream{Rate: 1000}), simulate.Options{
		Duration: calls / 1000 * time.Second,
		OnEvent:  func(e simulate.Event) { counts[strconv.FormatFloat((*e.End-e.T)*1000, 'f', 0, 64)]++ },
	})
	require.NoError(t, err)
	require.Len(t, counts, 2)
	assert.Equal(t, calls, counts["2"]+counts["82"])
	assert.InDelta(t, 0.1*calls, counts["82"], 4*sqrt(0.1*0.9*calls))

	server.Changes = []simulate.ServiceChange{{Service: simulate.Service{Mean: 20 * ms}}, {At: 1, Service: simulate.Service{SlowShare: 0.5}}}
	assert.Empty(t, served(server, simulate.Stream{Rate: 1}).Validate(), "what a change leaves out stays")
}
