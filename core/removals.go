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
	reported  HeldBackError  // that the operator knows of
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

// guardRemovals holds back the sources whose documents would take out more than
// that share of their rules.
func (b *sourceBook) guardRemovals(candidates []*document, most float64) {
	if most >= 1 {
		return
	}
	bySource := make(map[*followed][]*document)
	for _, d := range candidates {
		bySource[d.source] = append(bySource[d.source], d)
	}
	for f, documents := range bySource {
		f.guard(countRemoved(documents), most)
		f.confirmed = false // it was said of what the source holds now
	}
}

// guard holds the source back if so many of its rules may not go at once.
func (f *followed) guard(removed int, most float64) {
	if f.confirmed || float64(removed) <= most*float64(f.rules) {
		f.heldBack, f.reported = nil, HeldBackError{}
		return
	}
	if next := (HeldBackError{f.name, removed, f.rules, most}); f.heldBack == nil || *f.heldBack != next {
		f.heldBack = &next
	}
}

// settle takes note that the source was not held back, if that is so.
func (f *followed) settle() {
	if f.heldBack == nil {
		f.settled = f.revision
	}
}

// countRemoved returns how many rules are in force of the documents of a source
// that it does not hold any longer.
func countRemoved(documents []*document) int {
	gone := make(map[rules.Key]struct{})
	for _, d := range documents {
		if d.held.err == nil {
			for key := range d.inForce.rules.Keys() {
				gone[key] = struct{}{}
			}
		}
	}
	for _, d := range documents {
		if d.held.err == nil {
			for key := range d.held.rules.Keys() {
				delete(gone, key)
			}
		}
	}
	return len(gone)
}

// reportHeldBack adds that the source is held back to what has to be reported,
// once.
func (f *followed) reportHeldBack(rejections []Rejection) []Rejection {
	if f.reported == *f.heldBack {
		return rejections
	}
	f.reported = *f.heldBack
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
	defer f.settle()
	return e.reconcile(e.newChange(), nil), nil
}
