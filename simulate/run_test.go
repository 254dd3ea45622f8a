package simulate_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

func TestTheDurationDefaultsToTheSecondAfterTheLastCall(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		load simulate.Load
		want int
	}{
		"a call at 0":             {streams(simulate.Stream{Times: at(0)}), 1},
		"within a second":         {streams(simulate.Stream{Times: at(1999.999)}), 2},
		"on a boundary":           {streams(simulate.Stream{Times: at(2000)}), 3},
		"until is not the last":   {streams(simulate.Stream{Rate: 1, Until: 20 * time.Second}), 20},
		"the latest of streams":   {streams(simulate.Stream{Times: at(100)}, simulate.Stream{Times: at(4500)}), 5},
		"random calls, none came": {streams(simulate.Stream{Rate: 1e-9, Shape: simulate.Poisson, Until: time.Hour}), 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Len(t, run(t, rules.Set{}, test.load, 0).Seconds, test.want)
		})
	}
}

func TestCallsAtTheEndOrLaterAreNotMade(t *testing.T) {
	t.Parallel()
	load := streams(simulate.Stream{Rate: 2}, simulate.Stream{Times: at(1499, 1500, 9000)})
	result := run(t, rules.Set{}, load, 1500*time.Millisecond)
	assert.Len(t, result.Events, 4, "0, 0.5, 1 and 1.499")
	assert.Equal(t, []int{2, 2}, result.Passed("r"), "a second that is cut off has a row too")
}

func TestRowsForEverySecondAndResource(t *testing.T) {
	t.Parallel()
	load := simulate.Load{Streams: []simulate.Stream{
		{Resource: "b", Times: at(2500)},
		{Resource: "a", Times: at(0, 100)},
		{Resource: "b", Times: at(2600)},
	}}
	result, err := simulate.Run(t.Context(), rules.Set{}, load, simulate.Options{Duration: 3 * time.Second})
	require.NoError(t, err)
	assert.Equal(t, simulate.Result{
		Seconds: []simulate.Second{
			{Second: 0, Resource: "a", Offered: 2, Passed: 2, Completed: 2, Good: 2, RTP50: number(0), RTP99: number(0)},
			{Second: 0, Resource: "b"},
			{Second: 1, Resource: "a"},
			{Second: 1, Resource: "b"},
			{Second: 2, Resource: "a"},
			{Second: 2, Resource: "b", Offered: 2, Passed: 2, Completed: 2, Good: 2, RTP50: number(0), RTP99: number(0)},
		},
		Events: []simulate.Event{},
		States: []simulate.StateChange{},
		Limits: []simulate.Limit{},
	}, result)
	assert.Equal(t, []int{0, 0, 2}, result.Passed("b"))
	assert.Empty(t, result.Passed("c"))
}

func TestACallCountsInTheSecondInWhichItPasses(t *testing.T) {
	t.Parallel()
	set := flowRules(flow.Rule{Limit: 1, Algorithm: flow.Throttle, MaxWait: 2 * time.Second})
	result := run(t, set, streams(simulate.Stream{Times: at(500, 500, 500, 500)}), 2*time.Second)
	assert.Equal(t, []simulate.Second{
		{
			Second: 0, Resource: "r", Offered: 4, Passed: 1, Blocked: 1, Ceiling: number(1),
			Completed: 1, Good: 1, RTP50: number(0), RTP99: number(0),
		},
		{
			Second: 1, Resource: "r", Passed: 1, Waited: 1, Ceiling: number(1),
			Completed: 1, Good: 1, RTP50: number(0), RTP99: number(0),
		},
	}, result.Seconds, "the third passes at 2.5 s: after the last row")
	assert.Equal(t, []simulate.Event{
		{T: 0.5, Resource: "r", Outcome: simulate.Pass, End: number(0.5), Priority: "normal"},
		{T: 0.5, Resource: "r", Outcome: simulate.Pass, Wait: 1, End: number(1.5), Priority: "normal"},
		{T: 0.5, Resource: "r", Outcome: simulate.Pass, Wait: 2, End: number(2.5), Priority: "normal"},
		{T: 0.5, Resource: "r", Outcome: simulate.Block, Rule: "r", Kind: "flow", Priority: "normal"},
	}, result.Events, "and is followed to its end")
}

func TestACallRefusedAfterAWaitIsBlockedInTheSecondOfItsArrival(t *testing.T) {
	t.Parallel()
	set := flowRules(
		flow.Rule{Name: "spaced", Limit: 1, Algorithm: flow.Throttle, MaxWait: 10 * time.Second},
		flow.Rule{Name: "counted", Match: "*", Shared: true, Limit: 2, Window: 10 * time.Second},
	)
	result := run(t, set, streams(
		simulate.Stream{Times: at(0, 900)},
		simulate.Stream{Resource: "s", Times: at(950)}, // takes what the one that waits would have got
	), 0)
	assert.Equal(t, []int{1}, result.Blocked("r"))
	assert.Equal(t, simulate.Event{
		T: 0.9, Resource: "r", Outcome: simulate.Block, Wait: 0.1, Rule: "counted", Kind: "flow", Priority: "normal",
	}, result.Events[1])
}

func TestEventsAreInOrderOfArrivalHoweverLongCallsWait(t *testing.T) {
	t.Parallel()
	set := flowRules(flow.Rule{Resource: "slow", Limit: 1, Algorithm: flow.Throttle, MaxWait: time.Minute})
	load := simulate.Load{Streams: []simulate.Stream{
		{Resource: "slow", Times: at(0, 100, 200)},
		{Resource: "fast", Times: at(150, 2500)},
	}}
	result := run(t, set, load, 0)
	assert.Equal(t, []float64{0, 0.9, 0, 1.8, 0}, waits(result))
}

func TestWaitsEndBeforeCallsArrive(t *testing.T) {
	t.Parallel()
	set := flowRules(
		flow.Rule{Resource: "writes", Limit: 10, Algorithm: flow.Throttle, MaxWait: time.Second},
		flow.Rule{Resource: "reads", Limit: 2, Related: "writes"},
	)
	load := simulate.Load{Streams: []simulate.Stream{
		{Resource: "reads", Times: at(99, 100)},
		{Resource: "writes", Times: at(0, 0)},
	}}
	result := run(t, set, load, 0)
	assert.Equal(t, []string{simulate.Pass, simulate.Pass, simulate.Pass, simulate.Block}, outcomes(result),
		"the second write passes at 100 ms, just before the read")
}

// A second begins with the rows, which ask each resource how it stands.
func TestWaitsThatEndAsASecondBeginsEndInTheOrderInWhichTheyBegan(t *testing.T) {
	t.Parallel()
	set := flowRules(
		flow.Rule{Match: "*", Limit: 1, Algorithm: flow.Throttle, MaxWait: time.Second},
		flow.Rule{Resource: "writes", Limit: 1, Related: "reads", Algorithm: flow.FixedWindow},
	)
	load := streams(
		simulate.Stream{Resource: "writes", Times: at(0, 800)},
		simulate.Stream{Resource: "reads", Times: at(0, 900)},
	)
	result := run(t, set, load, 2*time.Second)
	assert.Equal(t, []string{"pass", "pass", "pass", "pass"}, outcomes(result), "the write passes before the read")
	assert.Equal(t, []float64{0, 0, 0.2, 0.1}, waits(result))
}

func TestTokensOriginsAndServiceTimes(t *testing.T) {
	t.Parallel()
	set := flowRules(
		flow.Rule{Name: "mobile", Limit: 5, Origin: "mobile"},
		flow.Rule{Name: "others", Limit: 3, Origin: rule.OtherOrigins},
	)
	load := streams(
		simulate.Stream{Times: at(0, 1, 2), Tokens: 2, Origin: "mobile", ServiceTime: time.Hour},
		simulate.Stream{Times: at(10, 11, 12, 13), Attrs: []simulate.Attr{{Name: "user", Values: []any{"x", 1}}}},
	)
	result := run(t, set, load, 0)
	assert.Equal(t, []string{"pass", "pass", "block", "pass", "pass", "pass", "block"}, outcomes(result))
	assert.Equal(t, "mobile", result.Events[2].Rule)
	assert.Equal(t, "others", result.Events[6].Rule)
}

func TestTheCeilingIsTheLowestOfTheEnforcedRulesPerSecond(t *testing.T) {
	t.Parallel()
	minute := flow.Rule{Name: "minute", Limit: 600, Window: time.Minute}
	second := flow.Rule{Name: "second", Limit: 20}
	shadow := flow.Rule{Name: "shadow", Limit: 1, Shadow: true}
	mobile := flow.Rule{Name: "mobile", Limit: 5, Origin: "mobile"}
	tests := map[string]struct {
		rules   []flow.Rule
		origins []string
		want    []float64 // one a second; none for null
	}{
		"none":                        {nil, []string{""}, nil},
		"the limit":                   {[]flow.Rule{second}, []string{""}, []float64{20, 20}},
		"in tokens per second":        {[]flow.Rule{minute}, []string{""}, []float64{10, 10}},
		"the lowest":                  {[]flow.Rule{second, minute}, []string{""}, []float64{10, 10}},
		"shadow rules are left out":   {[]flow.Rule{second, shadow}, []string{""}, []float64{20, 20}},
		"only a shadow rule":          {[]flow.Rule{shadow}, []string{""}, nil},
		"of an origin that calls":     {[]flow.Rule{second, mobile}, []string{"", "mobile"}, []float64{5, 5}},
		"of an origin that does not":  {[]flow.Rule{second, mobile}, []string{"web"}, []float64{20, 20}},
		"that blocks all":             {[]flow.Rule{{Limit: 0}}, []string{""}, []float64{0, 0}},
		"of a cold resource":          {[]flow.Rule{{Limit: 30, WarmUp: flow.WarmUp{Period: time.Minute}}}, []string{""}, []float64{10, 10.007}},
		"of a throttle":               {[]flow.Rule{{Limit: 7, Algorithm: flow.Throttle}}, []string{""}, []float64{7, 7}},
		"of a token bucket":           {[]flow.Rule{{Limit: 7, Algorithm: flow.TokenBucket}}, []string{""}, []float64{7, 7}},
		"of a pattern, its own":       {[]flow.Rule{{Match: "*", Limit: 7}}, []string{""}, []float64{7, 7}},
		"of a pattern, all resources": {[]flow.Rule{{Match: "*", Limit: 7, Shared: true}}, []string{""}, []float64{7, 7}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var load simulate.Load
			for _, origin := range test.origins {
				load.Streams = append(load.Streams, simulate.Stream{Resource: "r", Times: at(0, 1000), Origin: origin})
			}
			var got []float64
			for _, s := range run(t, flowRules(test.rules...), load, 0).Seconds {
				if s.Ceiling != nil {
					got = append(got, *s.Ceiling)
				}
			}
			assert.InDeltaSlice(t, test.want, got, 0.001)
		})
	}
}

func TestAnInvalidRuleEndsTheSimulationBeforeItBegins(t *testing.T) {
	t.Parallel()
	set := flowRules(flow.Rule{Limit: -1}, flow.Rule{Name: "second", Limit: 1, Window: -1})
	_, err := simulate.Run(t.Context(), set, streams(simulate.Stream{Times: at(0)}), simulate.Options{})
	var problems rules.Problems
	require.ErrorAs(t, err, &problems)
	assert.Len(t, problems, 2)
	assert.ErrorContains(t, err, "simulate: ")
}

func TestItsContextEndsARun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	last := time.Duration(0)
	options := simulate.Options{Duration: time.Hour, Progress: func(done, _ time.Duration) {
		if last = done; done == 3*time.Second {
			cancel()
		}
	}}
	result, err := simulate.Run(ctx, rules.Set{}, streams(simulate.Stream{Rate: 10}), options)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "simulate: after 3s of 1h0m0s")
	assert.Equal(t, 3*time.Second, last)
	assert.Empty(t, result)
}

func TestTheDeadlineOfARunIsNoneOfItsCalls(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Hour))
	defer cancel()
	set := flowRules(flow.Rule{Limit: 1, Window: 10 * time.Hour, Algorithm: flow.Throttle, MaxWait: 24 * time.Hour})
	result, err := simulate.Run(ctx, set, streams(simulate.Stream{Times: at(0, 0)}), simulate.Options{Events: true})
	require.NoError(t, err)
	assert.Equal(t, []float64{0, 36_000}, waits(result))
}

func TestProgressIsReportedOnceAVirtualSecond(t *testing.T) {
	t.Parallel()
	var reported []time.Duration
	options := simulate.Options{Duration: 2500 * time.Millisecond, Progress: func(done, of time.Duration) {
		assert.Equal(t, 2500*time.Millisecond, of)
		reported = append(reported, done)
	}}
	_, err := simulate.Run(t.Context(), rules.Set{}, streams(simulate.Stream{Rate: 10}), options)
	require.NoError(t, err)
	assert.Equal(t, []time.Duration{time.Second, 2 * time.Second, 2500 * time.Millisecond}, reported)
}

func TestTooManyCallsAtATimeEndARun(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	load := streams(simulate.Stream{Rate: 1e6, ServiceTime: time.Hour})
	_, err := simulate.Run(t.Context(), rules.Set{}, load, simulate.Options{Duration: 2 * time.Second})
	require.ErrorContains(t, err, "simulate: after 1s of 2s: more than 1000000 calls wait or are served")
}

func TestRefusalsAreNotLogged(t *testing.T) { // not parallel: it replaces the default logger
	var logged bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil)))
	defer slog.SetDefault(before)
	result := run(t, flowRules(flow.Rule{Limit: 0}), streams(simulate.Stream{Rate: 10}), time.Second)
	assert.Equal(t, []int{10}, result.Blocked("r"))
	assert.Empty(t, logged.String())
}

func TestRunWithoutAContextIsAnError(t *testing.T) {
	t.Parallel()
	var none context.Context
	_, err := simulate.Run(none, rules.Set{}, streams(simulate.Stream{Rate: 1}), simulate.Options{})
	require.EqualError(t, err, "simulate: the context is nil: use context.Background() if nothing is to end the run")
}
