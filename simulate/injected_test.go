package simulate_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

func TestFaultsAreInjectedIntoALoad(t *testing.T) {
	set := rules.Set{Fault: []fault.Rule{
		{Name: "slow", Resource: "pay", Percent: 20, Delay: 200 * time.Millisecond, Until: time.Unix(10, 0)},
		{Name: "broken", Resource: "pay", Percent: 10, Abort: fault.Abort{HTTP: 503}, Until: time.Unix(10, 0)},
	}}
	load := simulate.Load{Streams: []simulate.Stream{{Resource: "pay", Rate: 1000, Until: 20 * time.Second}}}
	run := func() simulate.Result {
		result, err := simulate.Run(t.Context(), set, load, simulate.Options{Events: true, Duration: 20 * time.Second})
		require.NoError(t, err)
		return result
	}
	result := run()
	delayed, refused := 0, 0
	for _, e := range result.Events {
		switch {
		case e.Outcome == simulate.Block:
			require.Equal(t, "broken", e.Rule)
			require.Equal(t, "fault", e.Kind)
			refused++
		case e.Wait > 0:
			delayed++
		}
		require.LessOrEqual(t, e.Wait, 0.2)
		if e.T+e.Wait > 10 {
			require.True(t, e.T >= 10 && e.Wait == 0 && e.Outcome == simulate.Pass, "the rules end at 10 s: %+v", e)
		}
	}
	within := func(percent float64) float64 { return 4 * math.Sqrt(10_000*percent*(1-percent)) }
	assert.InDelta(t, 1000, refused, within(0.1))
	assert.InDelta(t, 1800, delayed, within(0.18), "broken is asked first")

	var changes []string
	for _, s := range result.States {
		assert.InDelta(t, 10, s.T, 0)
		changes = append(changes, s.Rule+" "+s.From+" "+s.To)
	}
	assert.ElementsMatch(t, []string{"slow active ended", "broken active ended"}, changes)
	assert.Equal(t, result.Events, run().Events, "a run is repeatable")
}
