package core

import (
	"cmp"
	"maps"
	"slices"
)

// outcome is what came of putting rules in force.
type outcome struct {
	swap       Swap          // the zero Swap if nothing changed
	origin     origin        // of it
	rejections []Rejection   // those that were not reported before
	sound      []documentKey // documents that were rejected and are in force now
}

// reconcile puts in force what has changed, in the code's rules and in documents,
// as far as it can be; all others stay, at no cost. The caller holds rules.mu and has
// seen that the engine is open.
func (e *Engine) reconcile(c *change, candidates []*document, from origin) outcome {
	for _, d := range candidates {
		if d.problem = d.obstacle(); d.problem != nil {
			continue
		}
		differing := d.part.differing(d.held.rules)
		if len(differing) > 0 || d.held.rules.Len() < d.part.given.Len() {
			from.addDocument(d)
		}
		d.part.given = d.held.rules
		e.rules.edit(c, &d.part, differing)
		if created := cmp.Or(d.held.created, d.held.revision); d.part.created != created {
			d.part.created = created
			e.rules.contest(c, &d.part)
		}
	}
	e.rules.settle(c)
	result := outcome{swap: e.swap(c), origin: from}
	for _, d := range candidates {
		if d.problem == nil {
			d.apply(e.clock.Now())
		}
		if d.rejected && d.problem == nil && d.part.waiting == 0 {
			d.rejected = false
			result.sound = append(result.sound, documentKey{d.source.name, d.name})
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
