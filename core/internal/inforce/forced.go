package inforce

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Scope is what is switched off and on together, see core.Scope, which has the same fields.
type Scope struct {
	Kind     rule.Kind
	Rule     string
	Resource string
}

// ScopeOf returns the scope of a rule, or of all rules of a kind.
func ScopeOf(key rule.Key) Scope { return Scope{Kind: key.Kind, Rule: key.Name} }

// Forced is a state that an operator has forced.
type Forced struct {
	Scope
	State      string
	By, Reason string
	Since      clock.Instant
	Until      time.Time     // by the wall clock; the zero time if it does not end by itself
	Ends       clock.Instant // as it is measured; 0 if it does not end by itself
}

// StateOf returns the state; "" for none.
func (f *Forced) StateOf() string {
	if f == nil {
		return ""
	}
	return f.State
}

// Cause says in plain words that somebody has forced the state; "" for none.
func (f *Forced) Cause() string {
	if f == nil {
		return ""
	}
	text := "forced to be " + f.State
	if f.By != "" {
		text += " by " + f.By
	}
	if f.Reason != "" {
		text += ": " + f.Reason
	}
	return text
}

// IsOver says whether the time of the state is over, and how long it lasts else; 0 if it does not end.
func (f *Forced) IsOver(c clock.Clock) (left time.Duration, over bool) {
	if f == nil || f.Until.IsZero() {
		return 0, false
	}
	left = min(c.Until(f.Until), f.Ends.Sub(c.Now()))
	return left, left <= 0
}

// Concerns says whether the state of the rule is forced by this, or that of its kind.
func (f *Forced) Concerns(a *Rule) bool {
	return a.Key.Kind == f.Kind && (f.Rule == "" || a.Key.Name == f.Rule)
}
