package simulate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// tries runs a load and returns its calls in the order in which they were refused or
// ended: when each arrived in milliseconds, the number of the retry, and what became of it.
func tries(t *testing.T, set rules.Set, stream simulate.Stream, duration time.Duration) (list []string) {
	t.Helper()
	_, err := simulate.Run(t.Context(), set, streams(stream), simulate.Options{
		Duration: duration, OnEvent: func(e simulate.Event) {
			list = append(list, fmt.Sprintf("%.0f/%d %s %t %v", 1000*e.T, e.Retry, e.Outcome, e.Failed, e.Value))
		},
	})
	require.NoError(t, err)
	return list
}

func TestRefusedCallsAreTriedAgain(t *testing.T) {
	t.Parallel()
	limit := flowRules(flow.Rule{Limit: 1, Window: 100 * ms})
	stream := simulate.Stream{
		Times: at(0, 0, 0), Retries: 2, RetryDelay: 60 * ms, Attrs: []simulate.Attr{{Name: "user", Values: []any{"a", "b", "c"}}},
	}
	assert.Equal(t, []string{
		"0/0 pass false a", "0/0 block false b", "0/0 block false c",
		"60/1 block false b", "60/1 block false c",
		"120/2 pass false b", "120/2 block false c", // its last try
	}, tries(t, limit, stream, time.Second))
}

func TestFailedCallsAndThoseThatTimeOutAreTriedAgain(t *testing.T) {
	t.Parallel()
	stream := simulate.Stream{Times: at(0), Fails: 0.5, Retries: 3, RetryDelay: 100 * ms, ServiceTime: 10 * ms}
	// Every other call fails, beginning with the second: the first is number 0.
	assert.Equal(t, []string{"0/0 pass false <nil>"}, tries(t, rules.Set{}, stream, time.Second))
	stream.Fails = 1
	assert.Equal(t, []string{"0/0 pass true <nil>", "110/1 pass true <nil>", "220/2 pass true <nil>"},
		tries(t, rules.Set{}, stream, 300*ms), "the third retry would come after the end")
	stream.Fails, stream.Timeout, stream.RetryDelay = 0, 5*ms, 0
	assert.Equal(t, []string{"0/0 pass true <nil>", "5/1 pass true <nil>", "10/2 pass true <nil>", "15/3 pass true <nil>"},
		tries(t, rules.Set{}, stream, time.Second))
}

func TestRetriesFailByTheNumberOfTheTry(t *testing.T) {
	t.Parallel()
	stream := simulate.Stream{Times: at(0, 1), Fails: 0.5, Retries: 3, RetryDelay: 100 * ms}
	assert.Equal(t, []string{"0/0 pass false <nil>", "1/0 pass true <nil>", "101/1 pass false <nil>"},
		tries(t, rules.Set{}, stream, time.Second))
}

func TestRetriesAreCountedAsCalls(t *testing.T) {
	t.Parallel()
	stream := simulate.Stream{Rate: 10, Retries: 2, RetryDelay: 200 * ms}
	result := run(t, flowRules(flow.Rule{Limit: 0}), streams(stream), time.Second)
	assert.Equal(t, 10+8+6, result.Seconds[0].Offered)
	assert.Equal(t, 10+8+6, result.Seconds[0].Blocked)
	assert.Len(t, result.Events, 10+8+6)
}

func TestRetriesCountTowardsTheLargestLoad(t *testing.T) {
	t.Parallel()
	_, err := simulate.Run(t.Context(), rules.Set{}, streams(simulate.Stream{Rate: 1e6, Retries: 10}), simulate.Options{Duration: time.Second})
	require.ErrorContains(t, err, "streams make more than 10000000 calls")
}
