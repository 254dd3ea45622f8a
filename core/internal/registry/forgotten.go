package registry

import (
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/stat"
)

// CountIfForgotten counts a refused call whose resource was evicted before it was counted
// there.
func (g *Registry[E]) CountIfForgotten(r *Resource[E], tokens int32) {
	if r.Stats == g.Overflow.Stats {
		return // evicted it never was: it only has no place in the table
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.Gone.Load() {
		g.forgotten.add(&stat.Totals{Blocked: 1, BlockedTokens: uint64(tokens)})
	}
}

// All returns the resources, those of the last minute and those that rules
// name, and the one for overflow.
func (g *Registry[E]) All(now clock.Instant) []*Resource[E] {
	list, _ := g.AllAndForgotten(now)
	return list
}

// AllAndForgotten returns the resources as all does, and the sums of those that are
// forgotten. At one instant, each resource was either among the ones or among the others.
func (g *Registry[E]) AllAndForgotten(now clock.Instant) ([]*Resource[E], stat.Totals) {
	g.sweepAll(now)
	g.mu.Lock()
	before := g.forgotten.resources
	g.mu.Unlock()
	list := g.Table.All()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.forgotten.resources != before { // rarely, for the sweep is done
		list = slices.DeleteFunc(list, func(r *Resource[E]) bool { return r.Gone.Load() })
	}
	return append(list, g.Overflow), g.forgotten.totals
}
