package simulate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
)

func TestChangesOfStateHaveTheTimeOfTheSimulation(t *testing.T) {
	t.Parallel()
	s := newSimulation(Load{Streams: []Stream{{Resource: "pay", Times: []time.Duration{0}}}}, Options{Duration: time.Second})
	defer s.engine.Close()
	start := s.clock.Now()
	change := StateChange{Resource: "pay", Rule: "pay-errors", Kind: "breaker", From: "closed", To: "open"}
	s.stateChanged(start, change)
	s.stateChanged(start.Add(3200*time.Millisecond), change)
	assert.Equal(t, clock.Instant(0), start)
	assert.Len(t, s.states, 2)
	assert.Zero(t, s.states[0].T)
	change.T = 3.2
	assert.Equal(t, change, s.states[1])
}
