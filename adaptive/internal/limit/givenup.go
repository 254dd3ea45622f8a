package limit

import "math"

// giveUps is what it has helped to halve the limit since clients give up.
type giveUps struct {
	good  float64 // the share of the calls that ended well in a window in which most failed late; 0 if there was none
	calls float64 // calls that were under way then
	vain  bool    // fewer calls under way did not help
	other int     // windows in a row in which most calls failed, but no later than others ended
}

// otherReason is how many windows in a row say that calls fail for another reason. One may have calls that came just before
// the limit helped and calls that came just after.
const otherReason = 2

// someGood is the share of calls that end well, of a service that is slow. One that is short of something ends hardly a
// call before its clients give up.
const someGood = 0.1

// isInVain takes a window in which many calls failed late, and says whether it is of no use to halve the limit again:
// since it was, clearly fewer calls have been under way, and those that were let in did not end well more often, by half
// of the factor as logarithms. What they wait for is slow then, not short.
func (c *Control) isInVain(w Window) bool {
	g, good, calls := &c.giveUps, w.EndedWell/max(w.GivenUp, 1), w.inFlight()
	switch {
	case good < someGood, c.phase == limited && !c.GivenUp(), c.ShortOfProcessors(): // or a shortage is shown by more than that
		*g = giveUps{}
		return false
	case g.vain:
		return true
	case g.good == 0, good > g.good*math.Sqrt(g.calls/calls):
		g.good, g.calls = good, calls
		return false
	case calls > calmShare*g.calls && c.limit > c.least:
		return false
	}
	g.vain = true
	c.lift()
	return true
}

// failsOtherwise takes a window in which most calls failed, but not late. If clients gave up before that, they do not now.
func (c *Control) failsOtherwise() {
	if c.giveUps.other++; c.giveUps.other >= otherReason {
		c.lift()
	}
}

// lift puts the limit out of force that is due to clients who give up. It goes back to what it was before.
func (c *Control) lift() {
	if c.suspects == 0 || !c.GivenUp() {
		return
	}
	c.phase = open
	c.setLimit(c.suspects)
	c.suspects = 0
}
