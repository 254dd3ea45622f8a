package inforce

import (
	"cmp"
	"maps"

	"github.com/penstock-go/penstock/rule"
)

// switchedOff is core.SwitchOff.
const switchedOff = "off"

// Switches is the scopes that are switched. It never changes; nil is an empty one.
type Switches struct{ scopes map[Scope]*Forced }

// All returns how each scope is switched.
func (t *Switches) All() map[Scope]*Forced {
	if t == nil {
		return nil
	}
	return t.scopes
}

// Len returns how many scopes are switched.
func (t *Switches) Len() int { return len(t.All()) }

// Of returns how exactly this scope is switched; nil if it is not.
func (t *Switches) Of(scope Scope) *Forced { return t.All()[scope] }

// With returns the table with another state of a scope; "" takes it out.
func (t *Switches) With(f *Forced) *Switches {
	next := maps.Clone(t.All())
	if next == nil {
		next = make(map[Scope]*Forced)
	}
	if next[f.Scope] = f; f.State == "" {
		delete(next, f.Scope)
	}
	return &Switches{next}
}

// Off returns the switch by which a rule is off for calls of a resource; nil if it is on.
func (t *Switches) Off(key rule.Key, resource string) *Forced {
	if t.Len() == 0 {
		return nil
	}
	f := t.scopes[ScopeOf(key)]
	if f == nil && resource != "" {
		f = t.scopes[Scope{Resource: resource}]
	}
	if f = cmp.Or(f, t.scopes[Scope{Kind: key.Kind}], t.scopes[Scope{}]); f == nil || f.State != switchedOff {
		return nil
	}
	return f
}
