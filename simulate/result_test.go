package simulate_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/flow"
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
	assert.JSONEq(t, `{"seconds":[`+
		`{"second":0,"resource":"r","offered":3,"passed":2,"blocked":1,"waited":1,"ceiling":3},`+
		`{"second":0,"resource":"s","offered":1,"passed":1,"blocked":0,"waited":0,"ceiling":null}],`+
		`"events":[`+
		`{"t":0,"resource":"r","outcome":"pass","wait":0,"rule":"","kind":""},`+
		`{"t":0,"resource":"r","outcome":"pass","wait":0.333333334,"rule":"","kind":""},`+
		`{"t":0,"resource":"s","outcome":"pass","wait":0,"rule":"","kind":""},`+
		`{"t":0.0005,"resource":"r","outcome":"block","wait":0,"rule":"one","kind":"flow"}]}`,
		marshal(t, run(t, set, load, 0)))
}

func TestTheJSONOfAResultWithoutEventsHasAnEmptyList(t *testing.T) {
	t.Parallel()
	result, err := simulate.Run(t.Context(), rules.Set{}, streams(simulate.Stream{Times: at(0)}), simulate.Options{})
	require.NoError(t, err)
	assert.Contains(t, marshal(t, result), `"events":[]`)
}

// anyRule draws a sound rule.
func anyRule(t *rapid.T) flow.Rule {
	rule := flow.Rule{
		Resource: "r",
		Limit:    rapid.SampledFrom([]float64{0, 0.1, 0.5, 1, 2.5, 3, 10, 33.3, 100}).Draw(t, "limit"),
		Window:   rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second, 3 * time.Second}).Draw(t, "window"),
		Origin:   rapid.SampledFrom([]string{"", "", "a", flow.OtherOrigins}).Draw(t, "origin"),
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
	for range rapid.IntRange(1, 4).Draw(t, "streams") {
		load.Streams = append(load.Streams, simulate.Stream{
			Resource:    rapid.SampledFrom([]string{"r", "s"}).Draw(t, "resource"),
			Rate:        rapid.Float64Range(0.5, 60).Draw(t, "rate"),
			Shape:       rapid.SampledFrom([]simulate.Shape{simulate.Even, simulate.Poisson}).Draw(t, "shape"),
			From:        time.Duration(rapid.IntRange(0, 1500).Draw(t, "from")) * time.Millisecond,
			Tokens:      rapid.IntRange(1, 4).Draw(t, "tokens"),
			Origin:      rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "origin"),
			ServiceTime: time.Duration(rapid.IntRange(0, 500).Draw(t, "serviceTime")) * time.Millisecond,
		})
	}
	return load
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

		type key struct {
			second   int
			resource string
		}
		want := map[key]simulate.Second{}
		count := func(at float64, resource string, count func(s *simulate.Second)) {
			k := key{int(nanoseconds(at) / 1e9), resource}
			s := want[k]
			count(&s)
			want[k] = s
		}
		for _, e := range result.Events {
			count(e.T, e.Resource, func(s *simulate.Second) { s.Offered++ })
			if e.Outcome == simulate.Block {
				require.NotEmpty(t, e.Rule)
				count(e.T, e.Resource, func(s *simulate.Second) { s.Blocked++ })
				continue
			}
			require.Equal(t, simulate.Pass, e.Outcome)
			require.Empty(t, e.Rule)
			count(float64(nanoseconds(e.T)+nanoseconds(e.Wait))/1e9, e.Resource, func(s *simulate.Second) {
				s.Passed++
				if e.Wait > 0 {
					s.Waited++
				}
			})
		}
		for _, s := range result.Seconds {
			w := want[key{s.Second, s.Resource}]
			require.Equal(t, []int{w.Offered, w.Blocked, w.Passed, w.Waited}, []int{s.Offered, s.Blocked, s.Passed, s.Waited}, "%+v", s)
		}

		bare, err := simulate.Run(context.Background(), set, load, simulate.Options{Duration: duration})
		require.NoError(t, err)
		require.Equal(t, result.Seconds, bare.Seconds, "events or not")
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
