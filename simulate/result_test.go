package simulate_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

func marshal(t T, result simulate.Result) string {
	t.Helper()
	text, err := json.Marshal(result)
	require.NoError(t, err)
	return string(text)
}

func TestTheJSONOfAResult(t *testing.T) {
	t.Parallel()
	set := flowRules(flow.Rule{Name: "one", Limit: 1.5, Window: 500 * time.Millisecond, Algorithm: flow.Throttle, MaxWait: 400 * time.Millisecond})
	load := simulate.Load{Streams: []simulate.Stream{{Resource: "r", Times: at(0, 0, 0.5)}, {Resource: "s", Times: at(0)}}}
	load.Streams[0].Attrs = []simulate.Attr{{Name: "user", Values: []any{"a", 7}}, {Name: "tenant", Values: []any{"x"}}}
	load.Streams[0].Priority = rule.PriorityLow
	load.Streams[1].ServiceTime, load.Streams[1].Fails = 250*time.Millisecond, 1
	assert.JSONEq(t, `{"seconds":[`+
		`{"second":0,"resource":"r","offered":3,"passed":2,"blocked":1,"waited":1,`+
		`"completed":2,"failed":0,"good":2,"inFlight":0,"rtP50":0,"rtP99":0,"ceiling":3},`+
		`{"second":0,"resource":"s","offered":1,"passed":1,"blocked":0,"waited":0,`+
		`"completed":1,"failed":1,"good":0,"inFlight":1,"rtP50":0.25,"rtP99":0.25,"ceiling":null}],`+
		`"events":[`+
		`{"t":0,"resource":"r","outcome":"pass","wait":0,"rule":"","kind":"","end":0,"failed":false,"value":"a","attrs":{"user":"a","tenant":"x"},"priority":"low"},`+
		`{"t":0,"resource":"r","outcome":"pass","wait":0.333333334,"rule":"","kind":"","end":0.333333334,"failed":false,"value":7,"attrs":{"user":7,"tenant":"x"},"priority":"low"},`+
		`{"t":0,"resource":"s","outcome":"pass","wait":0,"rule":"","kind":"","end":0.25,"failed":true,"value":null,"priority":"normal"},`+
		`{"t":0.0005,"resource":"r","outcome":"block","wait":0,"rule":"one","kind":"flow","end":null,"failed":false,"value":"a","attrs":{"user":"a","tenant":"x"},"priority":"low"}],`+
		`"states":[],"limits":[]}`,
		marshal(t, run(t, set, load, 0)))
}

func TestTheJSONOfAResultWithoutEventsHasAnEmptyList(t *testing.T) {
	t.Parallel()
	result, err := simulate.Run(t.Context(), rules.Set{}, streams(simulate.Stream{Times: at(0)}), simulate.Options{})
	require.NoError(t, err)
	assert.Contains(t, marshal(t, result), `"events":[]`)
}

// anyRule draws a valid rule.
func anyRule(t *rapid.T) flow.Rule {
	rule := flow.Rule{
		Resource: "r",
		Limit:    rapid.SampledFrom([]float64{0, 0.1, 0.5, 1, 2.5, 3, 10, 33.3, 100}).Draw(t, "limit"),
		Window:   rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second, 3 * time.Second}).Draw(t, "window"),
		Origin:   rapid.SampledFrom([]string{"", "", "a", rule.OtherOrigins}).Draw(t, "origin"),
		Shadow:   rapid.IntRange(0, 4).Draw(t, "shadow") == 0,
	}
	if rapid.Bool().Draw(t, "pattern") {
		rule.Resource, rule.Match, rule.Shared = "", "*", rapid.Bool().Draw(t, "shared")
	}
	if rapid.Bool().Draw(t, "warm-up") {
		rule.WarmUp.Period = 5 * time.Second
	}
	wait := time.Duration(rapid.IntRange(0, 2000).Draw(t, "maxWait")) * time.Millisecond
	switch rapid.IntRange(0, 4).Draw(t, "limiter") {
	case 0:
		rule.Algorithm, rule.MaxWait = flow.Throttle, wait
	case 1:
		rule.Algorithm, rule.MaxWait = flow.TokenBucket, wait
	case 2:
		rule.Algorithm, rule.MaxWait, rule.Overdraft = flow.TokenBucket, wait, true
	case 3:
		rule.Algorithm = flow.FixedWindow
	}
	return rule
}

// anyLoad draws a load of a few seconds.
func anyLoad(t *rapid.T) simulate.Load {
	load := simulate.Load{Seed: rapid.Uint64().Draw(t, "seed")}
	milliseconds := func(most int, name string) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, name)) * time.Millisecond
	}
	fails := rapid.SampledFrom([]float64{0, 0, 0.3, 0.5, 1})
	server := anyServer(t)
	for range rapid.IntRange(1, 4).Draw(t, "streams") {
		s := simulate.Stream{
			Resource: rapid.SampledFrom([]string{"r", "s"}).Draw(t, "resource"),
			Rate:     rapid.Float64Range(0.5, 60).Draw(t, "rate"),
			Shape:    rapid.SampledFrom([]simulate.Shape{simulate.Even, simulate.Poisson}).Draw(t, "shape"),
			From:     milliseconds(1500, "from"),
			Tokens:   rapid.IntRange(1, 4).Draw(t, "tokens"),
			Origin:   rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "origin"),
			Timeout:  milliseconds(1000, "timeout") * time.Duration(rapid.IntRange(0, 1).Draw(t, "has timeout")),
			Fails:    fails.Draw(t, "fails"),
		}
		if server != nil && s.Resource == "s" {
			load.Servers = []simulate.Server{*server}
		} else {
			s.ServiceTime = milliseconds(1500, "serviceTime")
			if rapid.Bool().Draw(t, "phases") {
				s.Phases = []simulate.Phase{
					{Until: time.Second, ServiceTime: duration(milliseconds(500, "first serviceTime"))},
					{Until: 2 * time.Second, Fails: number(fails.Draw(t, "second fails"))},
				}
			}
		}
		load.Streams = append(load.Streams, s)
	}
	return load
}

// anyServer draws a server of "s", or none.
func anyServer(t *rapid.T) *simulate.Server {
	if rapid.Bool().Draw(t, "no server") {
		return nil
	}
	service := simulate.Service{
		Mean:  time.Duration(rapid.IntRange(1, 200).Draw(t, "mean")) * time.Millisecond,
		Shape: rapid.SampledFrom([]simulate.Shape{"", simulate.Exponential, simulate.Lognormal}).Draw(t, "shape"),
	}
	if service.Shape == simulate.Lognormal {
		service.P99 = 5 * service.Mean
	}
	return &simulate.Server{
		Resources: []string{"s*"}, Workers: rapid.IntRange(1, 5).Draw(t, "workers"), Service: service,
		Slowdown: rapid.SampledFrom([]float64{0, 0.02}).Draw(t, "slowdown"),
		Changes:  []simulate.ServiceChange{{At: 2 * time.Second, Service: simulate.Service{Mean: 20 * time.Millisecond}}},
	}
}

func anySet(t *rapid.T) rules.Set {
	list := rapid.SliceOfN(rapid.Custom(anyRule), 0, 4).Draw(t, "rules")
	for i := range list {
		list[i].Name = string(rune('a' + i))
	}
	return rules.Set{Flow: list}
}

func TestARunIsDeterministic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		set, load := anySet(t), anyLoad(t)
		first := marshal(t, run(t, set, load, 6*time.Second))
		require.Equal(t, first, marshal(t, run(t, set, load, 6*time.Second)))
	})
}

func TestRowsAreTheSumOfEvents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const duration = 6 * time.Second
		set, load := anySet(t), anyLoad(t)
		result := run(t, set, load, duration)
		for _, e := range result.Events {
			requireConsistent(t, e)
		}
		for _, row := range result.Seconds {
			row.Ceiling = nil
			require.Equal(t, rowOf(result.Events, row.Second, row.Resource), row)
		}
		bare, err := simulate.Run(context.Background(), set, load, simulate.Options{Duration: duration})
		require.NoError(t, err)
		require.Equal(t, result.Seconds, bare.Seconds, "events or not")
	})
}

func requireConsistent(t T, e simulate.Event) {
	t.Helper()
	if e.Outcome == simulate.Block {
		require.NotEmpty(t, e.Rule)
		require.Nil(t, e.End)
		require.False(t, e.Failed)
		return
	}
	require.Equal(t, simulate.Pass, e.Outcome)
	require.Empty(t, e.Rule)
	require.NotNil(t, e.End, "every call that passes ends")
	require.GreaterOrEqual(t, nanoseconds(*e.End), nanoseconds(e.T)+nanoseconds(e.Wait))
}

// rowOf returns the row of a second and a resource, from the events alone.
func rowOf(events []simulate.Event, second int, resource string) simulate.Second {
	row := simulate.Second{Second: second, Resource: resource}
	begin, end := int64(second)*1e9, int64(second+1)*1e9
	within := func(at int64) bool { return at >= begin && at < end }
	var times []int64
	type interval struct{ from, to int64 }
	var underWay []interval
	for _, e := range events {
		if e.Resource != resource {
			continue
		}
		arrived := nanoseconds(e.T)
		if within(arrived) {
			row.Offered++
		}
		if e.Outcome == simulate.Block {
			if within(arrived) {
				row.Blocked++
			}
			continue
		}
		passed, ended := arrived+nanoseconds(e.Wait), nanoseconds(*e.End)
		underWay = append(underWay, interval{passed, ended})
		if within(passed) {
			row.Passed++
			if e.Wait > 0 {
				row.Waited++
			}
		}
		if within(ended) {
			times = append(times, ended-passed)
			if row.Completed++; e.Failed {
				row.Failed++
			} else {
				row.Good++
			}
		}
	}
	for _, candidate := range underWay { // the number only rises when a call passes
		at, count := max(candidate.from, begin), 0
		for _, other := range underWay {
			if other.from <= at && at < other.to {
				count++
			}
		}
		if within(at) {
			row.InFlight = max(row.InFlight, count)
		}
	}
	if n := len(times); n > 0 {
		slices.Sort(times)
		row.RTP50, row.RTP99 = number(float64(times[(n+1)/2-1])/1e9), number(float64(times[(99*n+99)/100-1])/1e9)
	}
	return row
}

// Whatever the load, calls are neither lost nor invented.
func TestEveryCallIsAccountedFor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const duration = 4 * time.Second
		set, load := anySet(t), anyLoad(t)
		result := run(t, set, load, duration)
		var sum simulate.Second
		for _, row := range result.Seconds {
			sum.Offered += row.Offered
			sum.Passed += row.Passed
			sum.Blocked += row.Blocked
			sum.Completed += row.Completed
			sum.Failed += row.Failed
			sum.Good += row.Good
		}
		waiting, underWay := 0, 0
		for _, e := range result.Events {
			passed := nanoseconds(e.T) + nanoseconds(e.Wait)
			switch {
			case e.Outcome == simulate.Block:
			case passed >= int64(duration):
				waiting++
			case nanoseconds(*e.End) >= int64(duration):
				underWay++
			}
		}
		require.Len(t, result.Events, sum.Offered)
		require.Equal(t, sum.Offered, sum.Passed+sum.Blocked+waiting)
		require.Equal(t, sum.Passed, sum.Completed+underWay)
		require.Equal(t, sum.Completed, sum.Failed+sum.Good)
	})
}

func TestNothingIsRefusedThatNoEnforcedRuleGuards(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		set, load := anySet(t), anyLoad(t)
		for i := range set.Flow {
			set.Flow[i].Shadow = true
		}
		for _, e := range run(t, set, load, 3*time.Second).Events {
			require.Equal(t, simulate.Pass, e.Outcome)
			require.Zero(t, e.Wait)
		}
	})
}

func TestTimesAreTheNumbersNearestToThem(t *testing.T) {
	t.Parallel()
	load := streams(simulate.Stream{Times: []time.Duration{1_369_996_769, 1_710_039_446, 1_990_229_148}})
	result := run(t, rules.Set{}, load, 0)
	for i, want := range []string{"1.369996769", "1.710039446", "1.990229148"} {
		text, err := json.Marshal(result.Events[i].T)
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}
