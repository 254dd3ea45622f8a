package adaptive

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// While a value is above its threshold, the rate is lowered in steps, by the ratio of the
// threshold to the value, within bounds.
const (
	lowerEvery = 500 * time.Millisecond // and as long as calls take, up to lowerDelay
	lowerDelay = 2 * time.Second
	lowerMost  = 0.5
	lowerLeast = 0.97
	lowerFirst = 0.8 // is the most after the rate was raised: then it is nearly right

	// The rate is never lowered to less than that share of what passes at once, or of what
	// arrives at all.
	lowerAtOnce = 1. / 16
	rateFloor   = 0.001
)

// While all values are below a share of their thresholds, the rate is raised in steps.
const (
	raiseBelow = 0.9
	raiseEvery = 500 * time.Millisecond
	raiseMost  = 1.5
	raiseLeast = 1.1

	// From that share of the rate that was too much the last time on, it is raised slowly:
	// by a small share, which grows by a factor with every step.
	raiseNear   = 0.85
	raiseSlowly = 0.02
	raiseGrowth = 1.5

	// A service that shows so little of its threshold has come to rest.
	atRest = 0.5
)

// shedRate finds the rate of calls at which no value is above its threshold.
type shedRate struct {
	rate    float64       // calls in a second that may pass, or +Inf
	moved   clock.Instant // when the rate was changed last
	best    float64       // the highest rate of calls that did not fail, halved every minute
	tooMuch float64       // the rate that was too high the last time
	slowly  float64       // the share by which the rate was raised last near that; 0 after it was lowered
	rising  bool          // the rate was raised last
}

// measure is what has been seen at an instant.
type measure struct {
	excess   float64       // the worst value as a share of its threshold
	took     time.Duration // that calls take on average
	arriving float64       // calls in a second
	passing  float64       // of these
	good     float64       // calls that ended well in a second
	span     time.Duration // since the measure before
}

// move changes the rate by a measure.
func (s *shedRate) move(now clock.Instant, m measure) {
	s.best = max(s.best*math.Pow(0.5, m.span.Minutes()), m.good)
	limited, waited := !math.IsInf(s.rate, 1), now.Sub(s.moved)
	switch {
	case m.excess > 1 && (!limited || waited >= lowerEvery+min(m.took, lowerDelay)):
		s.lower(m, !limited)
		s.moved = now
	case m.excess < raiseBelow && limited && waited >= raiseEvery:
		s.raise(m.excess)
		s.moved = now
	}
	s.rate = max(s.rate, rateFloor*m.arriving)
	if m.excess < raiseBelow && s.rate > 2*m.arriving {
		s.rate = math.Inf(1)
	}
}

// lower lets fewer calls pass: no more than end well, if that is not only for a moment.
func (s *shedRate) lower(m measure, first bool) {
	passing := min(s.rate, m.passing)
	if first || m.good > passing/2 { // else it is not known which rate is too high
		s.tooMuch = passing
	}
	most := lowerMost
	if s.rising && !first {
		most = lowerFirst
	}
	s.rate = max(min(passing, m.good), lowerAtOnce*passing) * max(most, min(1/m.excess, lowerLeast))
	s.rising, s.slowly = false, 0
}

// raise lets more calls pass: soon nearly as many as were too many the last time, and
// from there on slowly more.
func (s *shedRate) raise(excess float64) {
	soon := s.rate * max(raiseLeast, min(raiseBelow/excess, raiseMost))
	if excess < atRest {
		soon = max(soon, s.best/2)
	}
	near := raiseNear * s.tooMuch
	if s.rate >= near {
		s.slowly = max(raiseSlowly, min(s.slowly*raiseGrowth, raiseMost-1))
		near = s.rate * (1 + s.slowly)
	}
	s.rate = min(soon, near)
	s.rising = true
}
