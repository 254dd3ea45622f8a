package simulate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// fleetRun is what became of a load under rules whose limits are those of the fleet.
type fleetRun struct {
	simulate.Result
	passes []float64 // when calls passed, in order; in seconds
}

// runFleet runs a load under a document of rules on several instances.
func runFleet(t *testing.T, document string, load simulate.Load, duration time.Duration, instances int) fleetRun {
	t.Helper()
	set, err := rules.Parse("rules.yaml", []byte(document))
	require.NoError(t, err)
	var r fleetRun
	r.Result, err = simulate.Run(t.Context(), set, load, simulate.Options{
		Duration: duration, Instances: instances, OnEvent: func(e simulate.Event) {
			if e.Outcome == simulate.Pass {
				r.passes = append(r.passes, e.T+e.Wait)
			}
		},
	})
	require.NoError(t, err)
	slices.Sort(r.passes)
	return r
}

// passed counts the calls that passed in a time.
func (r fleetRun) passed(from, to float64) int {
	first, _ := slices.BinarySearch(r.passes, from)
	last, _ := slices.BinarySearch(r.passes, to)
	return last - first
}

// worstSecond returns the most calls that passed in any second of a time.
func (r fleetRun) worstSecond(from, to float64) int {
	most := 0
	for _, t := range r.passes {
		if t >= from && t+1 <= to {
			most = max(most, r.passed(t, t+1))
		}
	}
	return most
}

// overload is a load of twice the limit.
func overload(limit float64, fleet simulate.Fleet) simulate.Load {
	return simulate.Load{Streams: []simulate.Stream{{Resource: "r", Rate: 2 * limit, Shape: simulate.Poisson}}, Fleet: fleet, Seed: 1}
}

// fleetRule is a document with a limit of the fleet.
func fleetRule(limit float64, more string) string {
	return fmt.Sprintf("flow: [{name: quota, resource: r, limit: %s, scope: fleet%s}]", strconv.FormatFloat(limit, 'f', -1, 64), more)
}

func latency(mean time.Duration) simulate.Fleet {
	return simulate.Fleet{Latency: simulate.Service{Mean: mean}}
}

// requestsPerInstance returns how many requests an instance makes in a second, on average.
func (r fleetRun) requestsPerInstance(instances int) float64 {
	requests := 0
	for _, second := range r.Backend {
		requests += second.Requests
	}
	return float64(requests) / float64(len(r.Backend)*instances)
}

func withLoss(f simulate.Fleet) simulate.Fleet    { f.Loss = 0.01; return f }
func withSkew(f simulate.Fleet) simulate.Fleet    { f.Skew = number(0.9); return f }
func exponential(f simulate.Fleet) simulate.Fleet { f.Latency.Shape = simulate.Exponential; return f }

// Twice as many calls come as may pass. From the third second on, what passes in ten seconds
// is as near to the limit as total says, and no second has more than worst times the limit.
// The first two seconds are more uneven: the instances have yet to learn their demand.
func TestAFleetKeepsToItsLimitInOverload(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, test := range []struct {
		name      string
		rule      string
		limit     float64
		instances int
		fleet     simulate.Fleet
		total     float64 // how far off, as a share of the limit
		worst     float64 // from the third second on
		first     float64 // from the start on
		long      bool    // for make long
	}{
		{"one instance", "", 1000, 1, latency(2 * ms), 0.01, 1.08, 1.08, true},
		{"ten instances", "", 1000, 10, latency(2 * ms), 0.01, 1.08, 1.1, false},
		{"a hundred instances", "", 1000, 100, latency(2 * ms), 0.01, 1.08, 1.25, false},
		{"1 ms", "", 1000, 10, latency(ms), 0.01, 1.08, 1.1, true},
		{"2 ms at random", "", 1000, 10, exponential(latency(2 * ms)), 0.01, 1.08, 1.1, true},
		{"20 ms", "", 1000, 10, latency(20 * ms), 0.01, 1.08, 1.1, false},
		{"50 ms", "", 1000, 10, latency(50 * ms), 0.01, 1.08, 1.1, true},
		{"20 ms, a hundred instances", "", 1000, 100, latency(20 * ms), 0.01, 1.08, 1.25, true},
		{"50 ms, a hundred instances", "", 1000, 100, latency(50 * ms), 0.01, 1.08, 1.25, true},
		{"lost replies", "", 1000, 10, withLoss(latency(2 * ms)), 0.02, 1.08, 1.1, false},
		{"lost replies, a hundred instances", "", 1000, 100, withLoss(latency(2 * ms)), 0.02, 1.08, 1.25, true},
		{"one has most", "", 1000, 10, withSkew(latency(2 * ms)), 0.01, 1.08, 1.08, false},
		{"one of a hundred has most", "", 1000, 100, withSkew(latency(2 * ms)), 0.01, 1.08, 1.08, true},
		{"100 a second", "", 100, 10, latency(2 * ms), 0.04, 1.2, 1.4, false},
		{"10,000 a second", "", 10_000, 10, latency(2 * ms), 0.01, 1.08, 1.1, true},
		{"token bucket", ", algorithm: tokenBucket, burst: 100", 1000, 10, latency(2 * ms), 0.01, 1.08, 1.1, true},
		{"token bucket that waits", ", algorithm: tokenBucket, burst: 100, maxWait: 200ms", 1000, 10, latency(2 * ms), 0.01, 1.08, 1.15, false},
		{"throttle", ", algorithm: throttle, maxWait: 200ms", 1000, 10, latency(2 * ms), 0.01, 1.08, 1.08, false},
		{"throttle, a hundred instances", ", algorithm: throttle, maxWait: 200ms", 1000, 100, latency(2 * ms), 0.01, 1.08, 1.4, true},
		{"window", ", fleet: {mode: window}", 1000, 10, latency(2 * ms), 0.015, 1.04, 1.04, false},
		{"fixed window", ", algorithm: fixedWindow", 1000, 10, latency(2 * ms), 0.01, 1.1, 1.2, false},
		// A sliding window of ten parts, which each instance has then, passes a part more in
		// seconds that do not begin with one.
		{"shares", ", fleet: {mode: share}", 1000, 10, latency(2 * ms), 0.15, 1.08, 1.11, false},
		{"shares of a hundred instances", ", fleet: {mode: share}", 1000, 100, latency(2 * ms), 0.03, 1.08, 1.11, true},
		{"ask for each call", ", fleet: {mode: ask}", 1000, 10, latency(2 * ms), 0.01, 1.005, 1.005, false},
		{"ask for each call, 20 ms", ", fleet: {mode: ask}", 1000, 100, latency(20 * ms), 0.01, 1.005, 1.005, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.long {
				longtest.Skip(t, "the other rows")
			}
			r := runFleet(t, fleetRule(test.limit, test.rule), overload(test.limit, test.fleet), 12*time.Second, test.instances)
			assert.InDelta(t, 1, float64(r.passed(2, 12))/(10*test.limit), test.total, "total of ten seconds")
			assert.LessOrEqual(t, float64(r.worstSecond(2, 12))/test.limit, test.worst, "worst second later")
			assert.LessOrEqual(t, float64(r.worstSecond(0, 12))/test.limit, test.first, "worst second of all")
			if test.limit >= 1000 && !strings.Contains(test.rule, "ask") {
				assert.LessOrEqual(t, r.requestsPerInstance(test.instances), 12.5)
			}
		})
	}
}

// An outage of two seconds after which the backend has lost all, if empty says so. What
// passes meanwhile is what [fleet.OnOutage] says, and half a second later all is as before.
func TestAFleetGoesOnInAnOutage(t *testing.T) {
	t.Parallel()
	for i, test := range []struct {
		onOutage     string
		instances    int
		skew         float64 // 0 for none
		during       float64 // share of the limit that passes in the outage
		tolerance    float64
		more         float64 // tokens more than the limit from the beginning to 2 s after the end, at most, in seconds
		worst, after float64 // second of all; how far off the second is that begins half a second after the end
	}{
		{"last", 1, 0, 1, 0.15, 0.15, 1.2, 0.1},
		{"last", 8, 0, 1, 0.15, 0.15, 1.2, 0.1},
		{"last", 50, 0, 1, 0.15, 0.15, 1.2, 0.1},
		{"last", 8, 0.9, 1, 0.15, 0.15, 1.2, 0.1},
		{"share", 8, 0, 1, 0.1, 0.15, 1.2, 0.1},
		{"share", 8, 0.9, 0.33, 0.1, 0.15, 1.2, 0.1},
		{"closed", 8, 0, 0.03, 0.03, 0.15, 1.2, 0.1},
		{"open", 8, 0, 1.9, 0.1, 2, 2.1, 1},
	} {
		for _, empty := range longtest.Of([]bool{i%2 == 0}, []bool{false, true}) {
			t.Run(fmt.Sprintf("%s %d %v %v", test.onOutage, test.instances, test.skew, empty), func(t *testing.T) {
				t.Parallel()
				const limit = 1000
				f := latency(2 * time.Millisecond)
				if test.skew > 0 {
					f.Skew = &test.skew
				}
				f.Outages = []simulate.Outage{{From: 5 * time.Second, Until: 7 * time.Second, Empty: empty}}
				r := runFleet(t, fleetRule(limit, ", fleet: {onOutage: "+test.onOutage+"}"), overload(limit, f), 12*time.Second, test.instances)
				assert.InDelta(t, test.during, float64(r.passed(5, 7))/(2*limit), test.tolerance, "during the outage")
				assert.LessOrEqual(t, float64(r.passed(5, 9))/limit-4, test.more, "tokens too many until two seconds after it")
				assert.LessOrEqual(t, float64(r.worstSecond(0, 12))/limit, test.worst, "worst second")
				assert.InDelta(t, 1, float64(r.passed(7.5, 8.5))/limit, test.after, "half a second after it")
				for second, row := range r.Fleet {
					want := test.instances
					if second == 5 || second == 6 {
						want = 0
					}
					assert.Equal(t, want, row.Connected, "second %d", second)
				}
				assert.Equal(t, []simulate.OutageSpan{{From: 5, Until: 7, Empty: empty}}, r.Outages)
			})
		}
	}
}

// With less than the limit, hardly any call is refused, after the first second: in that one
// the instances learn their demand.
func TestAFleetRefusesFewCallsBelowItsLimit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		latency time.Duration
		skew    *float64
		refused float64 // share of the calls
	}{{2 * time.Millisecond, nil, 0.001}, {20 * time.Millisecond, nil, 0.01}, {2 * time.Millisecond, number(0.9), 0.001}} {
		f := latency(test.latency)
		f.Skew = test.skew
		load := overload(1000, f)
		load.Streams[0].Rate = 800
		r := runFleet(t, fleetRule(1000, ""), load, 12*time.Second, 10)
		refused, offered := 0, 0
		for _, row := range r.Fleet[1:] {
			refused, offered = refused+row.Refused, offered+row.Passed+row.Refused
		}
		assert.LessOrEqual(t, float64(refused)/float64(offered), test.refused, "%v, skew %v", test.latency, test.skew != nil)
	}
}

func TestAThousandInstancesKeepToTheirLimit(t *testing.T) {
	t.Parallel()
	const limit = 10_000
	instances := longtest.Of(150, 1000)
	r := runFleet(t, fleetRule(limit, ""), overload(limit, latency(2*time.Millisecond)), 4*time.Second, instances)
	assert.InDelta(t, 1, float64(r.passed(2, 4))/(2*limit), 0.02)
	assert.LessOrEqual(t, float64(r.worstSecond(2, 4))/limit, 1.08)
	assert.Len(t, r.Fleet, 4)
	assert.Nil(t, r.Fleet[0].Instances, "only of up to 100")
	assert.Equal(t, instances, r.Fleet[3].Connected)
}

// The rows of a limit that is shared say the same as those of the resource.
func TestRowsOfTheFleetAddUp(t *testing.T) {
	t.Parallel()
	const instances = 5
	load := overload(200, latency(2*time.Millisecond))
	load.Streams[0].Tokens = 2
	load.Streams = append(load.Streams, simulate.Stream{Resource: "other", Rate: 10})
	document := fleetRule(200, "") + "\nisolation: [{resource: other, limit: 1}]"
	r := runFleet(t, document, load, 5*time.Second, instances)
	require.Len(t, r.Fleet, 5)
	require.Len(t, r.Backend, 5)
	passed, blocked := r.Passed("r"), r.Blocked("r")
	for second, row := range r.Fleet {
		assert.InDelta(t, second, row.T, 0)
		assert.Equal(t, "quota", row.Rule)
		assert.Equal(t, "flow", row.Kind)
		assert.Equal(t, "r", row.Resource)
		assert.InDelta(t, 200, *row.Limit, 0)
		assert.Equal(t, 2*passed[second], row.Passed)
		assert.Equal(t, 2*blocked[second], row.Refused)
		sum := 0
		for _, part := range row.Instances {
			sum += part
		}
		assert.Equal(t, row.Passed, sum)
		assert.Len(t, row.Instances, instances)
		assert.Equal(t, slices.Min(row.Instances), row.Least)
		assert.Equal(t, slices.Max(row.Instances), row.Most)
		assert.Equal(t, instances, row.Connected)
		assert.Positive(t, r.Backend[second].Requests)
		assert.Zero(t, r.Backend[second].Unanswered)
	}
	for _, row := range r.Seconds {
		if row.Resource == "r" {
			assert.InDelta(t, 200, *row.Ceiling, 0, "one for all instances")
		}
	}
}

// A rule for each of several resources is several limits; one that they share is one.
func TestEachLimitOfTheFleetHasRows(t *testing.T) {
	t.Parallel()
	load := streams(simulate.Stream{Resource: "a:1", Rate: 10}, simulate.Stream{Resource: "a:2", Rate: 10}, simulate.Stream{Resource: "b", Rate: 10})
	document := `flow:
- {name: each, match: "a:*", limit: 5, scope: fleet}
- {name: all, match: "*", perResource: false, limit: 12, scope: fleet}
- {name: shadow, resource: b, limit: 1, scope: fleet, shadow: true}
`
	r := runFleet(t, document, load, time.Second, 2)
	var names []string
	for _, row := range r.Fleet {
		names = append(names, row.Rule+" "+row.Resource)
	}
	assert.Equal(t, []string{"all *", "each a:1", "each a:2"}, names)
}

// Rules of the fleet have a backend with one instance, too, and others do not change by it.
func TestRulesOfTheFleetAndOthersGoTogether(t *testing.T) {
	t.Parallel()
	document := "flow: [{name: quota, resource: r, limit: 100, scope: fleet}, {name: own, resource: r, limit: 20}]"
	for _, instances := range []int{1, 4} {
		r := runFleet(t, document, overload(300, latency(2*time.Millisecond)), 5*time.Second, instances)
		limit := min(100, 20*instances)
		assert.InDelta(t, limit, float64(r.passed(1, 5))/4, 0.05*float64(limit), "%d instances", instances)
		for _, row := range r.Seconds {
			assert.InDelta(t, limit, *row.Ceiling, 0)
		}
	}
}

func TestTheSameSeedGivesTheSameFleet(t *testing.T) {
	t.Parallel()
	f := simulate.Fleet{
		Latency: simulate.Service{Mean: 2 * time.Millisecond, Shape: simulate.Exponential}, Loss: 0.01, Skew: number(0.5),
		Outages: []simulate.Outage{{From: time.Second, Until: 1500 * time.Millisecond, Empty: true}},
	}
	marshal := func(seed uint64) string {
		load := overload(300, f)
		load.Seed = seed
		data, err := json.Marshal(runFleet(t, fleetRule(300, ""), load, 4*time.Second, 20).Result)
		require.NoError(t, err)
		return string(data)
	}
	first := marshal(1)
	assert.Equal(t, first, marshal(1))
	assert.NotEqual(t, first, marshal(2))
}

func TestRowsOfTheFleetAreBounded(t *testing.T) {
	t.Parallel()
	set, err := rules.Parse("rules.yaml", []byte(fleetRule(1, "")))
	require.NoError(t, err)
	_, err = simulate.Run(t.Context(), set, streams(simulate.Stream{Rate: 0.001}), simulate.Options{Duration: 12 * time.Hour, Instances: 100})
	require.EqualError(t, err,
		"simulate: duration is 43200 s: limits of the fleet (1) on 100 instances make more than 4000000 numbers in it; shorten it")
	var faults simulate.Faults
	require.ErrorAs(t, err, &faults)
}

// After the last call there is an end, although members step for ever.
func TestAFleetEndsWhenItsCallsHaveEnded(t *testing.T) {
	t.Parallel()
	load := streams(simulate.Stream{Times: at(0, 0, 500), ServiceTime: 3 * time.Second, Retries: 1, RetryDelay: 100 * time.Millisecond})
	load.Fleet.Outages = []simulate.Outage{{Until: time.Hour}}
	for mode, most := range map[string]int{"ask": 0, "lease": 2} { // leased: one call of each instance before it knows
		r := runFleet(t, fleetRule(1, ", algorithm: tokenBucket, maxWait: 2s, fleet: {mode: "+mode+", onOutage: closed}"), load, time.Second, 2)
		assert.Len(t, r.Seconds, 1, mode)
		assert.LessOrEqual(t, len(r.passes), most, mode)
	}
}

// A limit on calls under way that the instances share is used in full, and never exceeded, whatever the
// backend does.
func TestAFleetSharesPlaces(t *testing.T) {
	t.Parallel()
	const document = "isolation: [{name: pool, resource: r, limit: 40, maxWait: 1s, scope: fleet}]"
	load := simulate.Load{
		Streams: []simulate.Stream{{Resource: "r", Rate: 800, Shape: simulate.Poisson, ServiceTime: 100 * time.Millisecond}},
		Seed:    1,
		Fleet:   simulate.Fleet{Outages: []simulate.Outage{{From: 5 * time.Second, Until: 6 * time.Second, Empty: true}}},
	}
	r := runFleet(t, document, load, 10*time.Second, 8)
	for second := 2.; second < 10; second++ {
		assert.InDelta(t, 400, r.passed(second, second+1), 20, "second %v", second)
	}
	require.Len(t, r.Fleet, 10)
	assert.Equal(t, "pool", r.Fleet[0].Rule)
	assert.Nil(t, r.Fleet[0].Limit, "it is none of a time")
	assert.LessOrEqual(t, r.requestsPerInstance(8), 8.)
}
