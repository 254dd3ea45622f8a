package limit

import "math"

// shown is what calls did when a shortage was shown by their response times, and what they have done since other calls are
// under way, to see whether fewer of them take less long.
type shown struct {
	calls, response, ends float64 // under way, in seconds, and of so many calls; all 0 if that is settled
	replaced              float64 // calls that have ended since
	since                 Window  // after as many had ended as were under way
}

// remember takes what calls did in the window in which an experiment showed a shortage.
func (s *shown) remember(w Window, by Evidence) {
	*s = shown{}
	if by == ByLimits && w.Ends >= leastEnds {
		*s = shown{calls: w.inFlight(), response: w.response(), ends: w.Ends}
	}
}

// isInVainToLimit says whether the limit is of no use: far fewer calls are under way than when a shortage was shown, others than
// then, and they take as long, by half of the factor as logarithms. What they wait for is slow then, not short.
func (c *Control) isInVainToLimit(w Window) bool {
	s := &c.shown
	if w.Late > 0 || c.computes || c.phase != limited { // clients have gone whose work is still to be done, or it is known what is short
		*s = shown{}
	}
	if s.calls == 0 {
		return false
	}
	if s.replaced < s.calls {
		s.replaced += w.Ended
		return false
	}
	s.since = s.since.Plus(w)
	fewer := math.Log(s.calls / s.since.inFlight())
	if s.since.Ends < leastEnds || fewer < math.Log(1/calmShare) {
		return false
	}
	shorter := math.Log(s.response/s.since.response()) / fewer
	deviation := certainty * math.Sqrt(c.variation/s.since.Ends+c.variation/s.ends) / fewer
	if shorter-deviation > 0.5 {
		*s = shown{}
	}
	return shorter+deviation < 0.5
}

// liftShown puts a limit out of force that is in vain. What calls took under it is what they take.
func (c *Control) liftShown() {
	c.endProbe(false)
	c.phase = open
	c.base.verified = true
	c.base.set(max(c.shown.since.response(), minResponse), c.shown.since.Ends)
	c.setLimit(plenty(c.shown.calls))
	c.before, c.suspects = earlier{}, 0
	c.shown = shown{}
}
