package simulate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
)

func TestChangesOfStateCountFromTheStartOfTheLoad(t *testing.T) {
	t.Parallel()
	set := rules.Set{Breaker: []breaker.Rule{{Resource: "pay", Threshold: 0.5, MinCalls: 2, OpenFor: 2 * time.Second}}}
	var found [][]StateChange
	for _, start := range []time.Time{{}, time.Date(2026, 3, 28, 21, 0, 0, 0, time.UTC)} {
		load := Load{Start: start, Streams: []Stream{{Resource: "pay", Rate: 2, Until: 6 * time.Second, Fails: 1}}}
		result, err := Run(t.Context(), set, load, Options{Instances: 1})
		require.NoError(t, err)
		require.NotEmpty(t, result.States)
		for _, change := range result.States {
			assert.InDelta(t, 3, change.T, 3, "seconds since the start")
		}
		found = append(found, result.States)
	}
	assert.Equal(t, found[0], found[1])
}

func TestChangesOfStateHaveTheTimeOfTheSimulation(t *testing.T) {
	t.Parallel()
	s := newSimulation(Load{Streams: []Stream{{Resource: "pay", Times: []time.Duration{0}}}}, Options{Duration: time.Second, Instances: 1}, false)
	defer s.instances[0].engine.Close()
	change := core.StateChange{
		At: s.clock.Now().Add(3200 * time.Millisecond), Resource: "pay", Rule: "pay-errors", Kind: "breaker", From: "closed", To: "open",
	}
	s.stateChanged(s.instances[0], change)
	change.At = s.clock.Now() // found later
	s.stateChanged(s.instances[0], change)
	s.finishStates()
	assert.Equal(t, []StateChange{
		{T: 0, Resource: "pay", Rule: "pay-errors", Kind: "breaker", From: "closed", To: "open"},
		{T: 3.2, Resource: "pay", Rule: "pay-errors", Kind: "breaker", From: "closed", To: "open"},
	}, s.states)
}
