package simulate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core"
)

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
