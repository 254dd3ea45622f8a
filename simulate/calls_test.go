package simulate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

const ms = time.Millisecond

func duration(d time.Duration) *time.Duration { return &d }

// ends returns when the calls of a result ended, in milliseconds and with a "!"
// behind those that failed; "-" for those that were refused.
func ends(result simulate.Result) (list []string) {
	for _, e := range result.Events {
		switch {
		case e.End == nil:
			list = append(list, "-")
		case e.Failed:
			list = append(list, fmt.Sprintf("%v!", float64(nanoseconds(*e.End))/1e6))
		default:
			list = append(list, fmt.Sprint(float64(nanoseconds(*e.End))/1e6))
		}
	}
	return list
}

// failing returns the indexes of the calls that failed.
func failing(result simulate.Result) (list []int) {
	for i, e := range result.Events {
		if e.Failed {
			list = append(list, i)
		}
	}
	return list
}

func TestFailuresAreSpreadEvenly(t *testing.T) {
	t.Parallel()
	for fails, want := range map[float64][]int{
		0:     nil,
		1:     {0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
		0.5:   {1, 3, 5, 7, 9},
		0.3:   {3, 6, 9},
		0.1:   {9},
		0.7:   {1, 2, 4, 5, 7, 8, 9},
		0.25:  {3, 7},
		0.09:  nil,
		0.999: {1, 2, 3, 4, 5, 6, 7, 8, 9},
	} {
		result := run(t, rules.Set{}, streams(simulate.Stream{Rate: 10, Until: time.Second, Fails: fails}), 0)
		assert.Equal(t, want, failing(result), "%v", fails)
	}
}

func TestFailuresCountRefusedCallsToo(t *testing.T) {
	t.Parallel()
	set := flowRules(flow.Rule{Limit: 2})
	result := run(t, set, streams(simulate.Stream{Rate: 4, Until: 2 * time.Second, Fails: 0.5}), 0)
	assert.Equal(t, []string{"0", "250!", "-", "-", "1000", "1250!", "-", "-"}, ends(result))
}

func TestCallsThatTakeLongerThanTheirTimeoutFailAtIt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		stream simulate.Stream
		want   []string
	}{
		{"shorter", simulate.Stream{Times: at(0, 10), ServiceTime: 99 * ms, Timeout: 100 * ms}, []string{"99", "109"}},
		{"exactly", simulate.Stream{Times: at(0, 10), ServiceTime: 100 * ms, Timeout: 100 * ms}, []string{"100", "110"}},
		{"longer", simulate.Stream{Times: at(0, 10), ServiceTime: 101 * ms, Timeout: 100 * ms}, []string{"100!", "110!"}},
		{"fails before", simulate.Stream{Times: at(0), ServiceTime: 50 * ms, Timeout: 100 * ms, Fails: 1}, []string{"50!"}},
		{"would fail later", simulate.Stream{Times: at(0), ServiceTime: time.Hour, Timeout: 100 * ms, Fails: 1}, []string{"100!"}},
		{"no timeout", simulate.Stream{Times: at(0), ServiceTime: time.Hour}, []string{"3.6e+06"}},
	} {
		assert.Equal(t, test.want, ends(run(t, rules.Set{}, streams(test.stream), 0)), test.name)
	}
}

func TestTimeoutsBeginWhenACallPasses(t *testing.T) {
	t.Parallel()
	set := flowRules(flow.Rule{Limit: 10, Algorithm: flow.TokenBucket, Burst: 1, MaxWait: time.Second})
	result := run(t, set, streams(simulate.Stream{Times: at(0, 0, 0), ServiceTime: 80 * ms, Timeout: 90 * ms}), 0)
	assert.Equal(t, []string{"80", "180", "280"}, ends(result))
}

func TestPhasesAreThoseOfTheArrival(t *testing.T) {
	t.Parallel()
	stream := simulate.Stream{
		Times: at(0, 999, 1000, 1999, 2000, 2001), ServiceTime: 5 * ms,
		Phases: []simulate.Phase{
			{Until: time.Second},
			{Until: 2 * time.Second, ServiceTime: duration(2 * time.Second), Fails: number(1)},
		},
	}
	t.Run("the stream's own apply where a phase says nothing, and after the last", func(t *testing.T) {
		assert.Equal(t, []string{"5", "1004", "3000!", "3999!", "2005", "2006"}, ends(run(t, rules.Set{}, streams(stream), 0)))
	})
	t.Run("the last may go on to the end", func(t *testing.T) {
		stream.Phases = append(stream.Phases, simulate.Phase{ServiceTime: duration(7 * ms), Fails: number(0.5)})
		assert.Equal(t, []string{"5", "1004", "3000!", "3999!", "2007", "2008!"}, ends(run(t, rules.Set{}, streams(stream), 0)),
			"the fifth call of the stream fails not, the sixth does")
	})
	t.Run("a call that waits keeps the phase of its arrival", func(t *testing.T) {
		waiting := streams(simulate.Stream{Times: at(900, 900), Phases: []simulate.Phase{
			{Until: time.Second, ServiceTime: duration(30 * ms)}, {ServiceTime: duration(40 * ms)},
		}})
		set := flowRules(flow.Rule{Limit: 5, Algorithm: flow.TokenBucket, Burst: 1, MaxWait: time.Second})
		assert.Equal(t, []string{"930", "1130"}, ends(run(t, set, waiting, 0)))
	})
}

func TestPhasesDoNotChangeTheCallersLoad(t *testing.T) {
	t.Parallel()
	phases := make([]simulate.Phase, 1, 2)
	phases[0].Until = time.Second
	run(t, rules.Set{}, streams(simulate.Stream{Times: at(0), ServiceTime: ms, Phases: phases}), 0)
	assert.Equal(t, simulate.Phase{}, phases[:2][1])
}

func TestSecondsCountWhatEndsAndWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	load := streams(
		simulate.Stream{Times: at(0, 100, 200, 900), ServiceTime: 300 * ms}, // until 300, 400, 500, 1200
		simulate.Stream{Times: at(950), ServiceTime: 50 * ms, Fails: 1},     // until 1000
		simulate.Stream{Times: at(2500), ServiceTime: 2 * time.Second, Timeout: 250 * ms},
		simulate.Stream{Times: at(2900), ServiceTime: time.Second}, // ends after the last row
	)
	got := run(t, rules.Set{}, load, 3*time.Second).Seconds
	assert.Equal(t, []simulate.Second{
		{
			Second: 0, Resource: "r", Offered: 5, Passed: 5,
			Completed: 3, Good: 3, InFlight: 3, RTP50: number(0.3), RTP99: number(0.3),
		},
		{
			Second: 1, Resource: "r",
			Completed: 2, Failed: 1, Good: 1, InFlight: 1, RTP50: number(0.05), RTP99: number(0.3),
		},
		{
			Second: 2, Resource: "r", Offered: 2, Passed: 2,
			Completed: 1, Failed: 1, InFlight: 1, RTP50: number(0.25), RTP99: number(0.25),
		},
	}, got, "the call that ends at 1 s is not under way in second 1")
}

func TestACallThatTimesOutAsASecondBeginsIsNotUnderWayInIt(t *testing.T) {
	t.Parallel()
	load := streams(simulate.Stream{Times: at(0), ServiceTime: 2 * time.Second, Timeout: time.Second})
	got := run(t, rules.Set{}, load, 2*time.Second).Seconds
	assert.Equal(t, []int{1, 0}, []int{got[0].InFlight, got[1].InFlight})
	assert.Equal(t, []int{0, 1}, []int{got[0].Failed, got[1].Failed})
}

func TestCallsWithoutLengthAreNeverUnderWay(t *testing.T) {
	t.Parallel()
	got := run(t, rules.Set{}, streams(simulate.Stream{Times: at(0, 0, 5)}), 0).Seconds[0]
	assert.Zero(t, got.InFlight)
	assert.Equal(t, 3, got.Good)
	assert.Equal(t, number(0), got.RTP99)
}

func TestPercentilesAreTheLeastTimesThatEnoughCallsDoNotExceed(t *testing.T) {
	t.Parallel()
	for count, want := range map[int][2]float64{
		1: {1, 1}, 2: {1, 2}, 3: {2, 3}, 4: {2, 4}, 99: {50, 99}, 100: {50, 99}, 101: {51, 100}, 200: {100, 198},
	} {
		var load simulate.Load
		for i := range count { // the longest first
			load.Streams = append(load.Streams, simulate.Stream{
				Resource: "r", Times: at(0), ServiceTime: time.Duration(count-i) * ms,
			})
		}
		got := run(t, rules.Set{}, load, 0).Seconds[0]
		assert.InDelta(t, want[0]/1000, *got.RTP50, 1e-12, "%d", count)
		assert.InDelta(t, want[1]/1000, *got.RTP99, 1e-12, "%d", count)
	}
}

func TestAttributesComeInTurnOrAtRandom(t *testing.T) {
	t.Parallel()
	values := func(seed uint64, attr simulate.Attr, calls int) (list []any) {
		attr.Name = "user"
		load := streams(simulate.Stream{Rate: float64(calls), Until: time.Second, Attrs: []simulate.Attr{attr}})
		load.Seed = seed
		for _, e := range run(t, rules.Set{}, load, 0).Events {
			list = append(list, e.Value)
		}
		return list
	}
	assert.Equal(t, []any{"a", int64(7), "7", true, "a"}, values(0, simulate.Attr{Values: []any{"a", 7, "7", true}}, 5))
	assert.Equal(t, []any{"user-1", "user-2", "user-3", "user-1", "user-2"}, values(0, simulate.Attr{Count: 3}, 5))

	const count = 50
	calls := longtest.Of(20_000, 100_000)
	harmonic := 0.0
	for n := 1; n <= count; n++ {
		harmonic += 1 / float64(n)
	}
	for shape, probability := range map[simulate.Shape]func(n int) float64{
		simulate.Uniform: func(int) float64 { return 1.0 / count },
		simulate.Zipf:    func(n int) float64 { return 1 / (float64(n) * harmonic) },
	} {
		first := values(1, simulate.Attr{Count: count, Shape: shape}, calls)
		assert.Equal(t, first[:100], values(1, simulate.Attr{Count: count, Shape: shape}, calls)[:100], "the same seed")
		assert.NotEqual(t, first[:100], values(2, simulate.Attr{Count: count, Shape: shape}, calls)[:100], "another seed")
		seen := make(map[any]int)
		for _, v := range first {
			seen[v]++
		}
		require.Len(t, seen, count)
		for n := 1; n <= count; n++ {
			want := probability(n) * float64(calls)
			assert.InDelta(t, want, seen[fmt.Sprint("user-", n)], 5*sqrt(want), "%s, value %d", shape, n)
		}
	}
}

// The value of an event is that of the first attribute.
func TestEventsShowTheFirstAttribute(t *testing.T) {
	t.Parallel()
	result := run(t, rules.Set{}, streams(simulate.Stream{Times: at(0), Attrs: []simulate.Attr{
		{Name: "z", Values: []any{"first"}}, {Name: "a", Count: 3, Shape: simulate.Zipf},
	}}), 0)
	assert.Equal(t, "first", result.Events[0].Value)
}

func TestCallsCarryTheirPriority(t *testing.T) {
	t.Parallel()
	load := streams(simulate.Stream{Times: at(0), Priority: rule.PrioritySheddable, Inbound: true}, simulate.Stream{Times: at(1)})
	result := run(t, rules.Set{}, load, 0)
	assert.Equal(t, "sheddable", result.Events[0].Priority)
	assert.Equal(t, "normal", result.Events[1].Priority)
}
