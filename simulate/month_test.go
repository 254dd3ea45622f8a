package simulate_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// A simulation sees a month begin and end, by the calendar of a place.
func TestMonthsOfTheCalendarAreSimulated(t *testing.T) {
	longtest.Skip(t, "TestSimulationBeginsAtATimeOfTheCalendar")
	t.Parallel()
	set, err := rules.Parse("", []byte("flow: [{name: plan, resource: api, limit: 100, window: 1mo, timeZone: Europe/Berlin, startsAt: 2026-01-31}]"))
	require.NoError(t, err)
	start := time.Date(2026, time.January, 30, 12, 0, 0, 0, time.UTC)
	load := simulate.Load{Start: start, Streams: []simulate.Stream{{Resource: "api", Rate: 1.0 / 3600, Until: 36 * 24 * time.Hour}}}
	result, err := simulate.Run(t.Context(), set, load, simulate.Options{})
	require.NoError(t, err)
	passed := map[string]int{}
	for i := range result.Seconds {
		if n := result.Seconds[i].Passed; n > 0 {
			month := "from the 28th of February on"
			switch at := start.Add(time.Duration(result.Seconds[i].Second) * time.Second); {
			case at.Before(time.Date(2026, time.January, 30, 23, 0, 0, 0, time.UTC)):
				month = "before"
			case at.Before(time.Date(2026, time.February, 27, 23, 0, 0, 0, time.UTC)):
				month = "from the 31st of January on"
			}
			passed[month] += n
		}
	}
	assert.Equal(t, map[string]int{"before": 11, "from the 31st of January on": 100, "from the 28th of February on": 100}, passed)
}
