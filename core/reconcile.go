package core

import (
	"cmp"
	"maps"
	"slices"
)

// outcome is what came of putting rules in force.
type outcome struct {
	swap       Swap        // the zero Swap if nothing changed
	rejections []Rejection // those that were not reported before
}

// reconcile puts in force what has changed, in the code's rules and in documents,
// as far as it can be; all others stay, at no cost. The caller holds rules.mu and has
// seen that the engine is open.
func (e *Engine) reconcile(c *change, candidates []*document) outcome {
	for _, d := range candidates {
		if d.problem = d.obstacle(); d.problem != nil {
			continue
		}
		differing := d.part.differing(d.held.rules)
		d.part.given = d.held.rules
		e.rules.edit(c, &d.part, differing)
		if created := cmp.Or(d.held.created, d.held.revision); d.part.created != created {
			d.part.created = created
			e.rules.contest(c, &d.part)
		}
	}
	e.rules.settle(c)
	result := outcome{swap: e.swap(c)}
	for _, d := range candidates {
		if d.problem == nil {
			d.apply(e.clock.Now())
		}
		result.rejections = d.rejection(c, result.rejections)
	}
	for _, d := range slices.SortedFunc(maps.Keys(c.losers), (*document).compare) {
		result.rejections = d.rejection(c, result.rejections)
	}
	return result
}

// swap puts a change in force and returns what that changed, the zero Swap if
// nothing.
func (e *Engine) swap(c *change) Swap {
	if c.isEmpty() {
		return Swap{}
	}
	e.putInForce(c)
	now := e.clock.Now()
	e.rules.revision, e.rules.appliedAt = c.generation, now
	return Swap{
		Revision: c.generation, At: now, Rules: e.rules.count(), Took: now.Sub(c.now),
		Added: c.added, Changed: len(c.adopting) + c.replaced, Removed: c.removed,
	}
}
