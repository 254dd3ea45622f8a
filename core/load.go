package core

import "github.com/penstock-go/penstock/rules"

// Load puts the rules that come from code in force, in place of those of the
// last Load; rules of sources stay. All changes at once: a call acts by the
// whole set before or by the whole set after. A rule that keeps its name,
// resource and control keeps its state, see the fields of [flow.Rule].
//
// Load keeps no reference to the set and does not write to it. When the set has
// a mistake, or a name that a source's rule has too, the error is
// [rules.Problems] and nothing changes.
func (e *Engine) Load(set rules.Set) error {
	if err := set.Validate(); err != nil {
		return err
	}
	outcome, err := e.loadCode(set.WithDefaults())
	e.report(outcome)
	return err
}

func (e *Engine) loadCode(set rules.Set) (outcome, error) {
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	if e.isClosed() {
		return outcome{}, ErrClosed
	}
	if _, err := rules.Merge(append([]rules.Set{set}, e.sources.active()...)...); err != nil {
		return outcome{}, err
	}
	e.rules.code = set
	return e.reconcile(), nil
}

// swap puts a set in force that is sound and complete, and returns what that
// changed, the zero Swap if nothing. The caller holds rules.mu and has seen that
// the engine is open.
func (e *Engine) swap(set rules.Set) Swap {
	began := e.clock.Now()
	generation := e.generation.Load() + 1
	change := e.rules.compile(set, generation, began)
	if len(change.resources) == 0 {
		return Swap{}
	}
	staged := e.stage(change, set, generation)
	e.generation.Store(generation) // from here on every call acts by the new set

	for resource, next := range staged {
		// Who still acts by the set before does not find its plan any more and
		// asks for the generation again.
		resource.plan.Store(next)
	}
	now := e.clock.Now()
	for _, rule := range change.adopting {
		rule.adopt(now)
	}
	for _, rule := range change.retired {
		rule.retire()
	}
	e.rules.count, e.rules.revision, e.rules.appliedAt = set.Len(), generation, now
	return Swap{
		Revision: generation, At: now, Rules: set.Len(), Took: now.Sub(began),
		Added: change.added, Changed: len(change.adopting) + change.replaced, Removed: change.removed,
	}
}

// stage gives every resource that changes a plan for the coming generation and
// returns the plans that they keep when it has come.
func (e *Engine) stage(c change, set rules.Set, generation uint64) map[*resource]*plan {
	plans := make(map[string]*plan, len(c.resources))
	for name := range c.resources {
		plans[name] = &plan{since: generation}
	}
	for _, rule := range set.Flow {
		if p := plans[rule.Resource]; p != nil {
			p.add(e.rules.flow[rule.Name])
		}
	}
	e.resources.mu.Lock()
	defer e.resources.mu.Unlock()
	staged := make(map[*resource]*plan, len(plans))
	for name, p := range plans {
		r := e.resources.pin(name)
		if p.isEmpty() {
			e.resources.unpin(r)
		}
		staged[r] = p
		transition := *p
		transition.before = r.plan.Load()
		r.plan.Store(&transition)
	}
	e.resources.publish()
	return staged
}
