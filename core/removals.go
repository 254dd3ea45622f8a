package core

import (
	"fmt"

	"github.com/penstock-go/penstock/rules"
)

// removals is what a source keeps in mind of changes that take out too many of its
// rules at once. It is guarded by ruleBook.mu.
type removals struct {
	settled   int64          // the last revision of the source that was not held back
	confirmed bool           // whatever the source holds may be put in force
	heldBack  *HeldBackError // why what it holds is not in force; nil when it is not for this
	reported  *HeldBackError // that the operator knows of
}

// HeldBackError says that what a source holds is not put in force, for it would
// take out more of the rules at once than [Config.MaxRemoval] allows. What was in
// force stays until the source holds most of them again or [Engine.Confirm] is
// called.
type HeldBackError struct {
	Source  string
	Removed int // rules that would go
	Rules   int // rules of the source that are in force
	Most    float64
}

// Error tells how many rules would go.
func (e *HeldBackError) Error() string {
	return fmt.Sprintf("core: source %q: %d of its %d rules would go at once, more than the share of %v that is allowed: "+
		"the rules in force stay; put them back or confirm", e.Source, e.Removed, e.Rules, e.Most)
}

// choose returns what is to be in force of documents. Sources of which that would take
// out too many rules at once are held back.
func (e *Engine) choose(documents []*document) []*choice {
	for _, d := range documents {
		d.source.heldBack = nil
	}
	choices := e.rules.choose(documents)
	for e.guardRemovals(choices) {
		choices = e.rules.choose(documents) // those left out may make room for others
	}
	for _, d := range documents {
		d.source.guarded()
	}
	return choices
}

// guardRemovals holds back the sources that would lose more than the share of their
// rules that is allowed. It returns false if there are none but those that are held
// back already.
func (e *Engine) guardRemovals(choices []*choice) (more bool) {
	if e.maxRemoval >= 1 {
		return false
	}
	bySource := make(map[*followed][]*choice)
	for _, c := range choices {
		bySource[c.document.source] = append(bySource[c.document.source], c)
	}
	for f, choices := range bySource {
		removed := countRemoved(choices)
		// Divided rather than multiplied: 29 of 100 are not more than 0.29.
		if f.confirmed || removed == 0 || float64(removed)/float64(f.rules) <= e.maxRemoval {
			continue
		}
		f.holdBack(HeldBackError{f.name, removed, f.rules, e.maxRemoval})
		more = true
	}
	return more
}

func (f *followed) holdBack(why HeldBackError) {
	f.heldBack = &why
	if f.reported != nil && *f.reported == why {
		f.heldBack = f.reported // as before
	}
}

// guarded takes note of whether the source was held back.
func (f *followed) guarded() {
	f.confirmed = false // it was said of what the source holds now
	if f.heldBack == nil {
		f.settled, f.reported = f.revision, nil
	}
}

// countRemoved returns how many rules of a source are in force that are not chosen.
func countRemoved(choices []*choice) int {
	gone := make(map[rules.Key]struct{})
	for _, c := range choices {
		for key := range c.document.inForce.rules.Keys() {
			gone[key] = struct{}{}
		}
	}
	for _, c := range choices {
		for key := range c.version.rules.Keys() {
			delete(gone, key)
		}
	}
	return len(gone)
}

// reportHeldBack adds that the source is held back to what has to be reported,
// once.
func (f *followed) reportHeldBack(rejections []Rejection) []Rejection {
	if f.reported == f.heldBack {
		return rejections
	}
	f.reported = f.heldBack
	return append(rejections, Rejection{Source: f.name, Revision: f.revision, Err: f.heldBack})
}

// Confirm puts in force what the source of that name holds, however many of its
// rules that takes out, after it was held back for that; see [Config.MaxRemoval].
// It speaks of what the source holds now: later changes are held back again. The
// error says that no such source is followed or that nothing of it is held back.
func (e *Engine) Confirm(source string) error {
	outcome, err := e.confirm(source)
	e.report(outcome)
	return err
}

func (e *Engine) confirm(source string) (outcome, error) {
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	if e.isClosed() {
		return outcome{}, ErrClosed
	}
	f := e.sources.find(source)
	if f == nil {
		return outcome{}, fmt.Errorf("core: source %q is not followed: there is nothing to confirm", source)
	}
	if f.heldBack == nil {
		return outcome{}, fmt.Errorf("core: nothing of source %q is held back: there is nothing to confirm", source)
	}
	f.confirmed = true
	defer e.sources.changed()
	return e.reconcile(e.newChange(), nil), nil
}
