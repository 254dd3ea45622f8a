package call

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Evidence is what calls have shown of the origin and the attributes that a rule in force
// is for. Versions of the rule with the same origin and attributes share it. nil is that of a rule that
// is for no one origin and looks at no attribute: nothing is missing.
type Evidence struct {
	origin string // "" of a rule that is not for one
	keys   []string

	fromOrigin atomic.Bool // a call came from the origin
	attributes [rule.MaxKeys]attributeEvidence
	nextLook   atomic.Int64 // the instant from which on a call is looked at again, see looksAt
}

// lookInterval is how long no call is looked at after one was.
const lookInterval = 10 * time.Millisecond

// attributeEvidence says whether a call had the attribute when the rule asked for it, and
// whether a call lacked it.
type attributeEvidence struct{ found, lacking atomic.Bool }

// NewEvidence returns that of a rule; nil if nothing can be missing.
func NewEvidence(r rule.Rule) *Evidence {
	target := r.Target()
	origin, keys := originFor(&target), r.Attributes()
	if origin == "" && len(keys) == 0 {
		return nil
	}
	return &Evidence{origin: origin, keys: keys}
}

// originFor returns the one origin that a rule is for; "" if it is not for one.
func originFor(target *rule.Target) string {
	if target.Origin == rule.OtherOrigins {
		return ""
	}
	return target.Origin
}

// IsOf says whether the evidence is about the origin and the attributes of a version, which has a target.
func (e *Evidence) IsOf(r rule.Rule, target *rule.Target) bool {
	if e == nil {
		return originFor(target) == "" && len(r.Attributes()) == 0
	}
	return e.origin == originFor(target) && slices.Equal(e.keys, r.Attributes())
}

// note takes note of whether a call had the attribute of the key with index i. A nil
// evidence notes nothing.
func (e *Evidence) note(i int, isSet bool) {
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

// looksAt says whether the attributes of a call at an instant are looked at for the evidence alone, as the rule
// decides on most calls without them: now and then, until a call has had each. It costs other calls a load.
func (e *Evidence) looksAt(now clock.Instant) bool {
	if e == nil {
		return false
	}
	next := e.nextLook.Load()
	if int64(now) < next {
		return false
	}
	after := int64(now.Add(lookInterval))
	if e.isComplete() {
		after = math.MaxInt64
	}
	return e.nextLook.CompareAndSwap(next, after)
}

// isComplete says whether calls have had each attribute.
func (e *Evidence) isComplete() bool {
	for i := range e.keys {
		if !e.attributes[i].found.Load() {
			return false
		}
	}
	return true
}

// AttributeKeys returns the keys of the attributes that the rule looks at.
func (e *Evidence) AttributeKeys() []string {
	if e == nil {
		return nil
	}
	return e.keys
}

// Unseen returns the attributes that calls were asked for and none had.
func (e *Evidence) Unseen() (keys []string) {
	for i, key := range e.AttributeKeys() {
		if of := &e.attributes[i]; of.lacking.Load() && !of.found.Load() {
			keys = append(keys, key)
		}
	}
	return keys
}

// Unasked returns the attributes that no call was asked for.
func (e *Evidence) Unasked() (keys []string) {
	for i, key := range e.AttributeKeys() {
		if of := &e.attributes[i]; !of.lacking.Load() && !of.found.Load() {
			keys = append(keys, key)
		}
	}
	return keys
}

// OriginSeen says whether a call came from the origin, or the rule is not for one.
func (e *Evidence) OriginSeen() bool { return e == nil || e.origin == "" || e.fromOrigin.Load() }
