package core

import (
	"cmp"
	"maps"

	"github.com/penstock-go/penstock/rule"
)

// switchTable is the scopes that are switched. It never changes; nil is an empty one.
type switchTable struct{ scopes map[Scope]*Forced }

func (t *switchTable) all() map[Scope]*Forced {
	if t == nil {
		return nil
	}
	return t.scopes
}

func (t *switchTable) len() int { return len(t.all()) }

// of returns how exactly this scope is switched; nil if it is not.
func (t *switchTable) of(scope Scope) *Forced { return t.all()[scope] }

// with returns the table with another state of a scope; "" takes it out.
func (t *switchTable) with(f *Forced) *switchTable {
	next := maps.Clone(t.all())
	if next == nil {
		next = make(map[Scope]*Forced)
	}
	if next[f.Scope] = f; f.State == "" {
		delete(next, f.Scope)
	}
	return &switchTable{next}
}

// off returns the switch by which a rule is off for calls of a resource; nil if it is on.
func (t *switchTable) off(key rule.Key, resource string) *Forced {
	if t.len() == 0 {
		return nil
	}
	f := t.scopes[scopeOf(key)]
	if f == nil && resource != "" {
		f = t.scopes[Scope{Resource: resource}]
	}
	if f = cmp.Or(f, t.scopes[Scope{Kind: key.Kind}], t.scopes[Scope{}]); f == nil || f.State != SwitchOff {
		return nil
	}
	return f
}
