package core

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/core/internal/registry"
	"github.com/penstock-go/penstock/internal/match"
	"github.com/penstock-go/penstock/rule"
)

// maxUnmatched is how many rules [Status] names that never matched a call.
const maxUnmatched = 100

// noteMatched takes note of the rules that calls have matched, but for those of names
// beyond the bound, whose rules are noted when they are looked up.
func (e *Engine) noteMatched() {
	if e.rules.awaitsMatches() {
		for _, r := range e.resources.All(e.clock.Now()) {
			if r != e.resources.Overflow {
				r.NoteMatched()
			}
		}
	}
	called := calledNames{registry: &e.resources}
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	for _, active := range e.rules.all() {
		if active.Pattern != nil && active.Pattern.Exceptions != nil {
			x := active.Pattern.Exceptions
			x.Unseen = slices.DeleteFunc(x.Unseen, called.match)
		}
		if !active.LookedBack && !active.Called.Load() && e.resources.WasCalled(active) {
			active.Called.Store(true)
		}
		active.LookedBack = true
		if !active.Counted && active.Related() != "" {
			active.Counted = e.resources.KnowsCallOf(active.Related())
		}
	}
}

// awaitsMatches says whether there are rules of which it is not known that calls have matched them. Once there
// are none, nobody has to look at all resources.
func (s *ruleStore) awaitsMatches() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, active := range s.all() {
		if !active.Called.Load() || !active.Matched.Load() {
			return true
		}
	}
	return false
}

// calledNames are the names of resources that were called, as far as the registry remembers. They
// are read when they are asked for.
type calledNames struct {
	registry *registry.Registry[callEnv]
	names    []string
	matched  map[string]bool // by pattern
}

// mostPatterns is how many patterns are looked at in a report of what calls have not shown.
const mostPatterns = 1000

// match says whether one of the names is that, or matches the pattern. Of patterns beyond the bound it
// says so, too.
func (c *calledNames) match(pattern string) bool {
	if c.matched == nil {
		c.matched, c.names = make(map[string]bool), c.registry.CalledNames()
	}
	matched, known := c.matched[pattern]
	if known || len(c.matched) >= mostPatterns {
		return matched || !known
	}
	compiled, _ := match.Compile(pattern) // no error, as the rule is valid
	matched = slices.ContainsFunc(c.names, compiled.Matches)
	c.matched[pattern] = matched
	return matched
}

// unmatched returns the first rules of which no call was noted, by kind and name, and how many more there are.
func (s *ruleStore) unmatched() (first []rule.Key, more int) {
	for key, active := range s.all() {
		if !active.Matched.Load() {
			first = append(first, key)
		}
	}
	slices.SortFunc(first, func(a, b rule.Key) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	more = max(0, len(first)-maxUnmatched)
	return slices.Clip(first[:len(first)-more]), more
}

// UnmatchedRule is a rule in force of a source of which something is missing so far: that
// a call has come that it is for, and has what it looks at. Perhaps a name in it is
// misspelled.
type UnmatchedRule struct {
	Key      rule.Key
	Document string      // that the rule is in
	Target   rule.Target // the calls that the rule is for
	Missing  Missing

	// Attributes are the attributes that the rule looks at and no call had so far.
	Attributes []string

	// Related is the resource whose passes the rule counts, if that was not called; else "".
	Related string

	// Except are the exceptions of the rule which no resource is that was called.
	Except []string
}

// Missing says what no call has shown so far of those that a rule is for.
type Missing string

// What may be missing.
const (
	// MissingResource: no resource that the rule guards was called, as far as the engine
	// remembers, which knows the names of the last minute and 1024 from before.
	MissingResource Missing = "resource"

	// MissingRelated: the resource whose passes the rule counts was not called, see [rule.Target].
	MissingRelated Missing = "related"

	// MissingCall: such a resource was called, but not since the rule came into force, or
	// the rule has not asked calls for its attributes yet. Nothing is known of these.
	MissingCall Missing = "call"

	// MissingOrigin: such a resource was called since, but not by the rule's origin.
	MissingOrigin Missing = "origin"

	// MissingAttribute: the rule was asked about calls, and none had one of its attributes.
	MissingAttribute Missing = "attribute"

	// MissingExcept: no resource was called that one of the rule's exceptions names, see [rule.Target].
	MissingExcept Missing = "except"
)

// missingOf returns what is missing of a rule, with the attributes that no call had; "" for
// nothing.
func missingOf(a *inforce.Rule) (what Missing, attributes []string) {
	e := a.Evidence.Load()
	switch unseen, unasked := e.Unseen(), e.Unasked(); {
	case !a.Called.Load():
		return MissingResource, nil
	case relatedUnseen(a) != "":
		return MissingRelated, nil
	case !a.Matched.Load():
		return MissingCall, e.AttributeKeys()
	case !e.OriginSeen():
		return MissingOrigin, nil
	case len(unseen) > 0:
		return MissingAttribute, unseen
	case len(unasked) > 0: // as after a change of what the rule looks at
		return MissingCall, unasked
	case len(a.Unexcepted()) > 0:
		return MissingExcept, nil
	}
	return "", nil
}

// relatedUnseen returns the resource whose passes the rule counts, if that was not called; else "". The caller
// holds rules.mu.
func relatedUnseen(a *inforce.Rule) string {
	if a.Counted {
		return ""
	}
	return a.Related()
}

// unmatchedOfSources are the rules of sources of which something is missing, by the name of
// the source: the first hundred by kind and name, and how many more.
type unmatchedOfSources map[string]*unmatchedOfSource

type unmatchedOfSource struct {
	first []UnmatchedRule
	more  int
}

// unmatchedOfSources returns the rules of documents of which something is missing. The
// caller has called noteMatched, and holds rules.mu.
func (e *Engine) unmatchedOfSources() unmatchedOfSources {
	all := make(unmatchedOfSources)
	for key, active := range e.rules.all() {
		missing, attributes := missingOf(active)
		if missing == "" {
			continue
		}
		source, at := e.rules.book.Where(key)
		if source == "" {
			continue
		}
		of := all[source]
		if of == nil {
			of = new(unmatchedOfSource)
			all[source] = of
		}
		of.first = append(of.first, UnmatchedRule{
			key, at.Document, active.Target(), missing, attributes, relatedUnseen(active), slices.Clone(active.Unexcepted()),
		})
	}
	for _, of := range all {
		slices.SortFunc(of.first, func(a, b UnmatchedRule) int {
			return cmp.Or(cmp.Compare(a.Key.Kind, b.Key.Kind), cmp.Compare(a.Key.Name, b.Key.Name))
		})
		of.more = max(0, len(of.first)-maxUnmatched)
		of.first = slices.Clip(of.first[:len(of.first)-of.more])
	}
	return all
}
