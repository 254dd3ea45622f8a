package core

import (
	"context"

	"github.com/penstock-go/penstock/rule"
)

// Place returns the fencing number of the place that the call has of a limit on calls under way in
// the whole fleet, the first one if there are several; false if it has none. A store that remembers
// the highest number it was given, and refuses lower ones, refuses what a call sends whose instance
// was paused for so long that another one has got its place meanwhile. It must not run at the same
// time as Exit.
func (g *Guard) Place() (number uint64, ok bool) {
	if g == nil || g.extras == nil || g.extras.Passed == nil {
		return 0, false
	}
	for _, of := range g.extras.Passed.Rules[:g.extras.Passed.Asked()] {
		if placed, isPlaced := of.Limiter.(rule.Placed); isPlaced {
			if number, ok = placed.PlaceNumber(g.start); ok {
				return number, true
			}
		}
	}
	return 0, false
}

// Place is [Guard.Place] for the call within which ctx was made, see [GuardFrom].
func Place(ctx context.Context) (number uint64, ok bool) {
	c := callOf(ctx)
	if c == nil {
		return 0, false
	}
	defer c.mu.Unlock()
	return c.guard.Place()
}
