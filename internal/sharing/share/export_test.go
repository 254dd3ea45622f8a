package share

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

// What instances do at the least, see startPart and soon.
const (
	StartPart = startPart
	Soon      = soon
)

// Use is what the instance announces.
func (s *Share) Use(now clock.Instant) fleet.Use { return s.use(now) }

// Begin has the first announcement reserve an even part.
func (s *Share) Begin(now, knownSince clock.Instant, instances int) {
	s.begin(now, knownSince, instances)
}

// Divide takes the answer to an announcement.
func (s *Share) Divide(now clock.Instant, self string, known fleet.Fleet) time.Duration {
	return s.divide(now, self, known)
}

// Lost notes that the backend does not answer.
func (s *Share) Lost(now clock.Instant) { s.lost(now) }

// Granted is the fraction of the limit that the instance may use.
func (s *Share) Granted() float64 { return s.granted }
