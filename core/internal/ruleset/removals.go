package ruleset

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/penstock-go/penstock/rule"
)

// removals is what a source remembers of changes that remove too many of its rules.
type removals struct {
	accepted  int64     // the last revision of the source that was not held back
	confirmed bool      // whatever the source holds may be put in force
	heldBack  *HeldBack // why what it holds is not in force; nil when it is not for this
	reported  *HeldBack // that was reported

	// removed are the rules that were removed within [Config.RemovalWindow], and when.
	removed map[rule.Key]instant
}

// HeldBack is the error of a change that is not put in force because it would remove
// more rules than [Config.MaxRemoval] allows.
type HeldBack struct {
	Source  string
	Removed int // rules that would go, and those that went within Within
	Rules   int // rules of the source that are in force, and those that went within Within
	Most    float64
	Within  time.Duration // the removal window if rules that went before are counted; else 0
}

// Error tells how many rules would go.
func (e *HeldBack) Error() string {
	when := "would go at once"
	if e.Within > 0 {
		when = fmt.Sprintf("would be gone within %v", e.Within)
	}
	return fmt.Sprintf("core: source %q: %d of its %d rules %s, more than the share of %v that is allowed: "+
		"the rules in force stay; put them back or confirm", e.Source, e.Removed, e.Rules, when, e.Most)
}

// isTooMuch divides rather than multiplies: 29 of 100 are not more than 0.29.
func (e *HeldBack) isTooMuch() bool { return float64(e.Removed)/float64(e.Rules) > e.Most }

// HeldBack returns why what the source holds is not put in force; nil unless it would
// remove too many rules.
func (s *Source) HeldBack() *HeldBack { return s.heldBack }

// Confirm puts in force what a source holds, however many rules that removes.
func (b *Book) Confirm(s *Source, now instant) Outcome {
	s.confirmed = true
	return b.apply(s, nil, now)
}

// guard holds a source back if it would lose more than the share of its rules that
// is allowed, together with those that it has lost a short time before.
func (b *Book) guard(s *Source, candidates []*document, now instant) {
	wasHeldBack := s.heldBack != nil
	s.heldBack = nil
	config := b.config
	if config.MaxRemoval >= 1 {
		return
	}
	switch {
	case s.confirmed:
		clear(s.removed)
		return
	case !wasHeldBack: // waiting for long does not confirm anything
		maps.DeleteFunc(s.removed, func(_ rule.Key, at instant) bool { return now.Sub(at) >= config.RemovalWindow })
	}
	removed, given := b.difference(s, candidates)
	if why := b.tooMany(s, removed, given); why != nil {
		s.heldBack = why
		if s.reported != nil && *s.reported == *why {
			s.heldBack = s.reported // as before
		}
		return
	}
	for key := range given {
		delete(s.removed, key)
	}
	for key := range removed {
		s.removed[key] = now
	}
}

// tooMany says why a change of a source that removes some rules and gives others is held back; nil
// if it is not. It counts those of the change, and those that went before too.
func (b *Book) tooMany(s *Source, removed, given map[rule.Key]struct{}) *HeldBack {
	if len(removed) == 0 {
		return nil
	}
	why := HeldBack{Source: s.name, Removed: len(removed), Rules: s.rules, Most: b.config.MaxRemoval}
	sum := why
	sum.Rules += len(s.removed)
	for key := range s.removed {
		if _, back := given[key]; !back {
			sum.Removed, sum.Within = sum.Removed+1, b.config.RemovalWindow
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

// difference returns the rules that a source has no more once the documents are
// put in force as it holds them, and those that these have.
func (b *Book) difference(s *Source, documents []*document) (removed, given map[rule.Key]struct{}) {
	removed, given = make(map[rule.Key]struct{}), make(map[rule.Key]struct{})
	changing := make(map[*document]struct{}, len(documents))
	for _, d := range documents {
		if d.held.err != nil {
			continue
		}
		changing[d] = struct{}{}
		if d.held.isApplied {
			for r := range b.rules(&d.group) {
				given[r.Key()] = struct{}{}
			}
		}
		for key := range b.config.Table.Keys(d.held.rules) {
			given[key] = struct{}{}
		}
	}
	for d := range changing {
		for r := range b.rules(&d.group) {
			key := r.Key()
			if _, stays := given[key]; !stays && !b.hasElsewhere(s, key, changing) {
				removed[key] = struct{}{}
			}
		}
	}
	return removed, given
}

// hasElsewhere says whether another document of a source than those has a rule of
// that key.
func (b *Book) hasElsewhere(s *Source, key rule.Key, changing map[*document]struct{}) bool {
	isElsewhere := func(c claim) bool {
		if c.group.document == nil || c.group.document.source != s {
			return false
		}
		_, among := changing[c.group.document]
		return !among
	}
	present := b.entries.of(key)
	return present != nil && (isElsewhere(present.active) || slices.ContainsFunc(b.waiting[present], isElsewhere))
}

// reportHeldBack adds to an outcome that the source is held back, once.
func (s *Source) reportHeldBack(o *Outcome) {
	if s.reported == s.heldBack {
		return
	}
	s.reported = s.heldBack
	o.Rejections = append(o.Rejections, Rejection{DocumentKey{Source: s.name}, s.revision, s.heldBack})
}
