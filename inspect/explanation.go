package inspect

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// Explanation tells which rules a call is held against.
type Explanation struct {
	Call

	// Rules are in the order in which they are asked; shadows come last.
	Rules []Rule `json:"rules"`
}

// Rule is a rule as it applies to a call.
type Rule struct {
	Kind   rules.Kind `json:"kind"`
	Name   string     `json:"name"`
	Fields []Field    `json:"fields"` // in the order of a document, without the name and defaults
	Shadow bool       `json:"shadow"` // it refuses nothing

	// Source is where the rule comes from, "" for one from code, and Document,
	// Line and Column the place in there at which it begins.
	Source   string `json:"source,omitempty"`
	Document string `json:"document,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`

	// State is nil where no engine was asked.
	State *State `json:"state,omitempty"`
}

// Field is a field of a rule as its document writes it, less quotes.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// State is how a rule is on the resource, at the moment of asking.
type State struct {
	// Ceiling is in force: tokens per window.
	Ceiling float64 `json:"ceiling"`

	// Window is the time that the ceiling speaks of, in seconds.
	Window float64 `json:"window"`

	// Remaining is how many calls of one token that came now could pass, perhaps
	// after a wait.
	Remaining int64 `json:"remaining"`

	// Reset is how long it takes until there is more, in seconds.
	Reset float64 `json:"reset"`

	// Refused counts the calls of the resource that the rule refused, WouldBlock
	// those that it would have refused while it was a shadow.
	Refused    uint64 `json:"refused"`
	WouldBlock uint64 `json:"wouldBlock"`
}

// Explain asks the engine about a call, which is neither made nor remembered.
func Explain(engine *core.Engine, call Call) Explanation {
	e := Explanation{Call: call, Rules: []Rule{}}
	for _, applied := range engine.Explain(call.Resource, call.options()...) {
		rule := RuleOf(applied.Rule)
		rule.Source, rule.Document, rule.Line, rule.Column = applied.Source, applied.Document, applied.Line, applied.Column
		rule.State = &State{
			Ceiling:   applied.Ceiling,
			Window:    applied.Rule.Window.Seconds(),
			Remaining: applied.Remaining,
			Reset:     max(0, applied.Reset).Seconds(),
			Refused:   applied.Refused, WouldBlock: applied.WouldBlock,
		}
		e.Rules = append(e.Rules, rule)
	}
	return e
}

// RuleOf returns what a rule says, without place and state.
func RuleOf(rule flow.Rule) Rule {
	rule = rule.WithDefaults()
	of := Rule{Kind: rules.KindFlow, Name: rule.Name, Shadow: rule.Shadow}
	for _, d := range rules.Diff(rules.Set{}, rules.Set{Flow: []flow.Rule{rule}}) {
		for _, f := range d.Fields {
			of.Fields = append(of.Fields, Field{f.Field, f.To})
		}
	}
	return of
}
