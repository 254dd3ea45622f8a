package core

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rules"
)

// removals is what a source keeps in mind of changes that take out too many of its
// rules. It is guarded by ruleBook.mu.
type removals struct {
	settled   int64          // the last revision of the source that was not held back
	confirmed bool           // whatever the source holds may be put in force
	heldBack  *HeldBackError // why what it holds is not in force; nil when it is not for this

	// gone are the rules that were taken out within Config.RemovalWindow, and when.
	gone map[rules.Key]clock.Instant

	reported *HeldBackError // that the operator knows of
}

// HeldBackError says that what a source holds is not put in force, for it would
// take out more of the rules than [Config.MaxRemoval] allows. What was in
// force stays until the source holds most of them again or [Engine.Confirm] is
// called.
type HeldBackError struct {
	Source  string
	Removed int // rules that would go, and those that went within Within
	Rules   int // rules of the source that are in force, and those that went within Within
	Most    float64
	Within  time.Duration // Config.RemovalWindow if rules that went before are counted; else 0
}

// Error tells how many rules would go.
func (e *HeldBackError) Error() string {
	when := "would go at once"
	if e.Within > 0 {
		when = fmt.Sprintf("would be gone within %v", e.Within)
	}
	return fmt.Sprintf("core: source %q: %d of its %d rules %s, more than the share of %v that is allowed: "+
		"the rules in force stay; put them back or confirm", e.Source, e.Removed, e.Rules, when, e.Most)
}

// reconcile puts in force what the source holds now of documents that have changed,
// and of those that are held back; none of it if that takes out too many rules.
func (f *followed) reconcile(changed []*document) outcome {
	candidates := slices.AppendSeq(changed, maps.Keys(f.pending))
	slices.SortFunc(candidates, (*document).compare)
	candidates = slices.Compact(candidates)
	f.guard(candidates)
	if f.heldBack != nil {
		for _, d := range candidates {
			f.pending[d] = struct{}{}
		}
	}
	outcome := f.engine.reconcile(f.engine.newChange(), candidates, origin{sources: []string{f.name}, rules: f.rules})
	f.confirmed = false // it was said of what the source holds now
	if f.heldBack == nil {
		f.settled, f.reported = f.revision, nil
	}
	return outcome
}

// guard holds the source back if it would lose more than the share of its rules that
// is allowed, together with those that it has lost a short time before.
func (f *followed) guard(candidates []*document) {
	wasHeldBack := f.heldBack != nil
	f.heldBack = nil
	most := f.engine.maxRemoval
	if most >= 1 {
		return
	}
	now := f.engine.clock.Now()
	switch {
	case f.confirmed:
		clear(f.gone)
		return
	case !wasHeldBack: // waiting for long does not confirm anything
		maps.DeleteFunc(f.gone, func(_ rules.Key, at clock.Instant) bool { return now.Sub(at) >= f.engine.removalWindow })
	}
	removed, given := f.difference(candidates)
	if why := f.tooMany(removed, given); why != nil {
		f.holdBack(*why)
		return
	}
	for key := range given {
		delete(f.gone, key)
	}
	for key := range removed {
		f.gone[key] = now
	}
}

// tooMany says why a change that removes some rules and gives others is held back; nil
// if it is not. It counts those of the change, and those that went before too.
func (f *followed) tooMany(removed, given map[rules.Key]struct{}) *HeldBackError {
	if len(removed) == 0 {
		return nil
	}
	why := HeldBackError{Source: f.name, Removed: len(removed), Rules: f.rules, Most: f.engine.maxRemoval}
	sum := why
	sum.Rules += len(f.gone)
	for key := range f.gone {
		if _, back := given[key]; !back {
			sum.Removed, sum.Within = sum.Removed+1, f.engine.removalWindow
		}
	}
	switch {
	case sum.isTooMuch() && sum.Within > 0:
		return &sum
	case why.isTooMuch():
		return &why
	}
	return nil
}

// isTooMuch divides rather than multiplies: 29 of 100 are not more than 0.29.
func (e *HeldBackError) isTooMuch() bool { return float64(e.Removed)/float64(e.Rules) > e.Most }

func (f *followed) holdBack(why HeldBackError) {
	f.heldBack = &why
	if f.reported != nil && *f.reported == why {
		f.heldBack = f.reported // as before
	}
}

// difference returns the rules that the source has no more once the documents are
// put in force as it holds them, and those that these have.
func (f *followed) difference(documents []*document) (removed, given map[rules.Key]struct{}) {
	removed, given = make(map[rules.Key]struct{}), make(map[rules.Key]struct{})
	parts := make(map[*part]struct{}, len(documents)) // that change
	for _, d := range documents {
		if d.held.err != nil {
			continue
		}
		parts[&d.part] = struct{}{}
		for key := range d.held.rules.Keys() {
			given[key] = struct{}{}
		}
	}
	for p := range parts {
		for key := range p.given.Keys() {
			if _, stays := given[key]; !stays && !f.hasBeside(parts, key) {
				removed[key] = struct{}{}
			}
		}
	}
	return removed, given
}

// hasBeside says whether another document of the source than those has a rule of
// that key.
func (f *followed) hasBeside(parts map[*part]struct{}, key rules.Key) bool {
	isBeside := func(p *part) bool {
		_, among := parts[p]
		return !among && p.document != nil && p.document.source == f
	}
	if holder, _ := f.engine.rules.find(key); holder != nil && isBeside(holder) {
		return true
	}
	for rule := range f.engine.rules.waiting[key.Name] {
		if isBeside(rule.part) {
			return true
		}
	}
	return false
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
	return f.reconcile(nil), nil
}
