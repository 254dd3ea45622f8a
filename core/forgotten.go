package core

import (
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/stat"
)

// countIfForgotten counts a refused call whose resource was evicted before it was counted
// there.
func (g *registry) countIfForgotten(r *resource, tokens int32) {
	if r.resourceStats == g.overflowResource.resourceStats {
		return // evicted it never was: it only has no place in the table
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.Gone.Load() {
		g.forgotten.add(&stat.Totals{Blocked: 1, BlockedTokens: uint64(tokens)})
	}
}

// all returns the resources, those of the last minute and those that rules
// name, and the one for overflow.
func (g *registry) all(now clock.Instant) []*resource {
	list, _ := g.allAndForgotten(now)
	return list
}

// allAndForgotten returns the resources as all does, and the sums of those that are
// forgotten. At one instant, each resource was either among the ones or among the others.
func (g *registry) allAndForgotten(now clock.Instant) ([]*resource, stat.Totals) {
	g.sweepAll(now)
	g.mu.Lock()
	before := g.forgotten.resources
	g.mu.Unlock()
	list := g.table.All()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.forgotten.resources != before { // rarely, for the sweep is done
		list = slices.DeleteFunc(list, func(r *resource) bool { return r.Gone.Load() })
	}
	return append(list, g.overflowResource), g.forgotten.totals
}
