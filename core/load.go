package core

import "github.com/penstock-go/penstock/rules"

// Load puts the rules that come from code in force, in place of those of the
// last Load; rules of sources stay. All changes at once: a call acts by the
// whole set before or by the whole set after; only a turn that it has waited for
// stays its own, unless the rule now blocks all. A rule that keeps its name, what it
// guards and how it counts keeps its state, see the fields of [flow.Rule].
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
	if others := e.sources.active(); len(others) > 0 {
		if _, err := rules.Merge(append([]rules.Set{set}, others...)...); err != nil {
			return outcome{}, err
		}
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
	if change.isEmpty() {
		return Swap{}
	}
	limiters := e.putInForce(change, generation, began)
	now := e.clock.Now()
	limiters.settle(now)
	e.rules.revision, e.rules.appliedAt = generation, now
	return Swap{
		Revision: generation, At: now, Rules: set.Len(), Took: now.Sub(began),
		Added: change.added, Changed: len(change.adopting) + change.replaced, Removed: change.removed,
	}
}
