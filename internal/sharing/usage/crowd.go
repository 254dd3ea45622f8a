package usage

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

// Crowd is what this instance knows of others that have a greater limit, as while a rollout of a
// lower one is under way: they use more of a window than the limit of this instance is, and would
// leave it nothing. Then it counts by their limit, and uses no more than an even part of its own:
// all together pass no more than the greater limit, and those with the lower one no more than it.
// The zero value knows of none. It is guarded by its owner.
type Crowd struct {
	limit float64 // of the others: the most that was seen to be used, 0 if there are none
	until clock.Instant
}

// See takes what the store says is used of a window. More by up to slack is what instances owe.
func (c *Crowd) See(now clock.Instant, terms *fleet.Terms, used, slack float64) {
	if c.until <= now || used <= terms.Limit && terms.Buckets > 1 { // a fixed one begins with nothing
		*c = Crowd{}
	}
	if used > terms.Limit+slack && terms.Limit > 0 {
		c.limit = max(c.limit, used)
		c.until = now.Add(2 * terms.Window)
	}
}

// Is says whether others have a greater limit.
func (c *Crowd) Is(now clock.Instant) bool { return now < c.until }

// Terms are what this instance counts by.
func (c *Crowd) Terms(now clock.Instant, own fleet.Terms) fleet.Terms {
	if c.Is(now) {
		own.Limit = max(own.Limit, c.limit)
	}
	return own
}

// Part is how many tokens of a window this instance may use, of so many instances.
func (c *Crowd) Part(own *fleet.Terms, count int) int64 {
	return max(1, int64(own.Limit/float64(max(1, count))))
}
