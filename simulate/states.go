package simulate

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// stateChanged records that a rule changed its state at an instant of the virtual
// clock, which starts at 0.
func (s *simulation) stateChanged(at clock.Instant, change StateChange) {
	change.T = seconds(time.Duration(at))
	s.states = append(s.states, change)
}
