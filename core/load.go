package core

import "github.com/penstock-go/penstock/rules"

// Load puts the rules that come from code in force, in place of those of the
// last Load; rules of sources and of other owners stay. It is [Engine.LoadAs] for the
// owner "".
//
// All changes at once: a call acts by the whole set before or by the whole set after;
// only a reservation that it has waited for stays its own, unless the rule now blocks
// all. A rule that keeps its name and what it guards keeps its state, however it counts
// now.
//
// A name stands for one rule of a kind, and rules from code come before those of
// sources: a rule whose name a document has too replaces that of the document at once,
// with its state. The document's rule waits, which is reported as it is of documents
// that clash, and takes over in the very swap in which the code's rule goes. So a rule
// moves from documents to code and back without a gap.
//
// Load keeps no reference to the set and does not write to it. When the set has
// a mistake, the error is [rules.Problems] and nothing changes. What it costs depends
// on how many rules are not the same, and at the same place, as before.
func (e *Engine) Load(set rules.Set) error { return e.LoadAs("", set) }

// LoadAs is [Engine.Load] for one of several owners of rules in the code, such as a
// library: it takes the place of what the same owner has loaded before, and leaves that
// of others alone. An empty set takes the owner's rules out. When two owners have a
// rule of the same kind and name, that of the first by name is in force. The other
// waits until that is gone, which is logged as an error and reported to
// [Observer.Rejected]; LoadAs returns nil. Give rules names that begin with the owner's.
func (e *Engine) LoadAs(owner string, set rules.Set) error {
	outcome, err := e.load(owner, set)
	e.report(outcome)
	return err
}

func (e *Engine) load(owner string, set rules.Set) (outcome, error) {
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	if e.isClosed() {
		return outcome{}, ErrClosed
	}
	now := e.clock.Now()
	change, err := e.rules.book.Load(owner, set)
	if err != nil {
		return outcome{}, err
	}
	return e.put(change, now), nil
}
