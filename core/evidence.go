package core

import (
	"slices"
	"sync/atomic"

	"github.com/penstock-go/penstock/rule"
)

// evidence is what calls have shown of the origin and the attributes that a rule in force
// is for. Versions of the rule with the same origin and attributes share it.
type evidence struct {
	origin string // "" of a rule that is not for one
	keys   []string

	fromOrigin atomic.Bool // a call came from the origin
	attributes [rule.MaxKeys]attributeEvidence
}

// attributeEvidence says whether a call had the attribute when the rule asked for it, and
// whether a call lacked it.
type attributeEvidence struct{ found, lacking atomic.Bool }

func newEvidence(r rule.Rule) *evidence {
	return &evidence{origin: originFor(r), keys: r.Attributes()}
}

// originFor returns the one origin that a rule is for; "" if it is not for one.
func originFor(r rule.Rule) string {
	if origin := r.Target().Origin; origin != rule.OtherOrigins {
		return origin
	}
	return ""
}

// isOf says whether the evidence is about the origin and the attributes of a version.
func (e *evidence) isOf(r rule.Rule) bool {
	return e.origin == originFor(r) && slices.Equal(e.keys, r.Attributes())
}

// note takes note of whether a call had the attribute of the key with index i. A nil
// evidence notes nothing.
func (e *evidence) note(i int, isSet bool) {
	if e == nil {
		return
	}
	flag := &e.attributes[i].lacking
	if isSet {
		flag = &e.attributes[i].found
	}
	if !flag.Load() {
		flag.Store(true)
	}
}

// unseen returns the attributes that calls were asked for and none had.
func (e *evidence) unseen() (keys []string) {
	for i, key := range e.keys {
		if of := &e.attributes[i]; of.lacking.Load() && !of.found.Load() {
			keys = append(keys, key)
		}
	}
	return keys
}

// originSeen says whether a call came from the origin, or the rule is not for one.
func (e *evidence) originSeen() bool { return e.origin == "" || e.fromOrigin.Load() }

// evidenceFor returns the evidence of the rule if it is about this version; else nil.
func (s *ruleState) evidenceFor(version rule.Rule) *evidence {
	if s.rule == nil {
		return nil
	}
	if e := s.rule.evidence.Load(); e.isOf(version) {
		return e
	}
	return nil
}
