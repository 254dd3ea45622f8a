package simulate_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// February ends ten seconds after the start.
func TestSimulationBeginsAtATimeOfTheCalendar(t *testing.T) {
	t.Parallel()
	month := rule.Calendar{Period: calendar.Period{Count: 1, Unit: calendar.Month}, TimeZone: "Europe/Berlin"}
	set := rules.Set{
		Flow: []flow.Rule{{Resource: "a", Limit: 5, Calendar: month}},
		HotParam: []hotparam.Rule{{
			Resource: "b", Param: rule.StringsOf("user"), Limit: 3, Calendar: month, Scope: rule.ScopeFleet,
		}},
	}
	load := simulate.Load{
		Start: time.Date(2026, time.February, 28, 22, 59, 50, 0, time.UTC),
		Streams: []simulate.Stream{
			{Resource: "a", Rate: 1, Until: 20 * time.Second},
			{Resource: "b", Rate: 2, Until: 20 * time.Second, Attrs: []simulate.Attr{{Name: "user", Values: []any{"ann", "bob"}}}},
		},
	}
	result, err := simulate.Run(t.Context(), set, load, simulate.Options{Instances: 2})
	require.NoError(t, err)
	passed := map[string][2]int{} // before March, and in it
	for _, row := range result.Seconds {
		of := passed[row.Resource]
		of[row.Second/10] += row.Passed
		passed[row.Resource] = of
	}
	assert.Equal(t, map[string][2]int{"a": {10, 10}, "b": {6, 6}}, passed, "two instances have 5 each of a; a user has 3 of b")
}

func TestStartsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, start := range []time.Time{time.Unix(-1, 0), time.Unix(0, 1), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)} {
		load := simulate.Load{Start: start, Streams: []simulate.Stream{{Resource: "a", Rate: 1, Until: time.Second}}}
		faults := load.Validate()
		require.Len(t, faults, 1)
		assert.Equal(t, "start", faults[0].Field)
	}
}
