package core

import "github.com/penstock-go/penstock/clock"

// maxFormer is how many rules that were taken out are remembered.
const maxFormer = 1000

// formerRules are rules that were taken out, or made to count other calls, and have
// counted something that would still count: one that comes back, under its name and
// for the same calls, goes on from there. Of each name only the last is remembered,
// and only if it has one ceiling, rather than one for each resource that matches. The
// zero value is empty; ruleBook.mu guards it.
type formerRules struct {
	byName map[string]*flowRule
	oldest []*flowRule // in the order in which they were taken out, some of them back by now
}

// keep remembers a rule that was taken out, and forgets those that have nothing to
// tell any more, or are too many.
func (f *formerRules) keep(rule *flowRule, now clock.Instant) {
	if rule.common == nil || rule.related != "" {
		return
	}
	if f.byName == nil {
		f.byName = make(map[string]*flowRule)
	}
	former := &flowRule{terms: rule.terms, common: rule.common} // and nothing of where it stood
	f.byName[rule.terms.Name()] = former
	f.oldest = append(f.oldest, former)
	for len(f.oldest) > maxFormer || len(f.oldest) > 0 && f.oldest[0].common.Idle(now) {
		first := f.oldest[0]
		if name := first.terms.Name(); f.byName[name] == first {
			delete(f.byName, name)
		}
		f.oldest[0] = nil
		f.oldest = f.oldest[1:]
	}
}

// take returns the rule that a newcomer takes over from, nil if there is none.
func (f *formerRules) take(newcomer *flowRule) *flowRule {
	name := newcomer.terms.Name()
	former := f.byName[name]
	if former == nil || !newcomer.terms.CountsLike(former.terms) {
		return nil
	}
	delete(f.byName, name)
	return former
}
