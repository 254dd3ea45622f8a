package core

// outcome is what came of putting rules in force.
type outcome struct {
	swap       Swap        // the zero Swap if nothing changed
	rejections []Rejection // those that were not reported before
}

// reconcile puts in force what has changed, in the code's rules and in documents,
// as far as it can be. Documents that could not be put in force before are tried
// again; all others stay, at no cost. The caller holds rules.mu and has seen that
// the engine is open.
func (e *Engine) reconcile(c *change, changed []*document) outcome {
	candidates := e.sources.candidates(changed)
	choices := e.choose(candidates)
	for _, choice := range choices {
		if d := choice.document; choice.held {
			differing := d.part.differing(d.held.rules)
			d.part.given = d.held.rules
			e.rules.edit(c, &d.part, differing)
		}
	}
	e.rules.settle(c)
	result := outcome{swap: e.swap(c)}
	for _, choice := range choices {
		if choice.held {
			choice.document.apply(e.clock.Now())
		}
		result.rejections = e.sources.settle(choice, result.rejections)
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
