package inspect

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
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
	Kind   rule.Kind `json:"kind"`
	Name   string    `json:"name"`
	Fields []Field   `json:"fields"`        // in the order of a document, without the name and defaults
	Shadow bool      `json:"shadow"`        // it refuses nothing
	Off    bool      `json:"off,omitempty"` // it is switched off, and refuses nothing either

	// Source is where the rule comes from, "" for one from code, and Document,
	// Line and Column the place in there at which it begins.
	Source   string `json:"source,omitempty"`
	Document string `json:"document,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`

	// Attributes are the attributes that the rule looks at, as the call has them.
	Attributes []Attribute `json:"attributes,omitempty"`

	// PartitionKey is what the RateLimit fields of HTTP tell the limit of the value of the call by,
	// as "pk" has it, in base64: see core.RuleSnapshot.PartitionKey. "" for rules that have no limit
	// for each value.
	PartitionKey string `json:"partitionKey,omitempty"`

	// State is nil where no engine was asked.
	State *State `json:"state,omitempty"`
}

// Attribute is an attribute of a call that a rule looks at.
type Attribute struct {
	Key string `json:"key"`

	// Type is "text", "number" or "boolean", as rules tell the text "7" from the number 7; "" if the call
	// does not have the attribute.
	Type string `json:"type,omitempty"`

	Value string `json:"value,omitempty"`
}

// Field is a field of a rule as its document writes it, less quotes.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// State is how a rule is on the resource, at the moment of asking.
type State struct {
	// State is the state of the limiter, such as "open" of a circuit breaker; "" for
	// kinds of rules that have no states.
	State string `json:"state,omitempty"`

	// Quota is what remains of a limit on how much passes in a time; nil for rules
	// that limit something else.
	*Quota

	// Gauges are numbers that the kind shows, such as how many calls are under way.
	Gauges []Gauge `json:"gauges,omitempty"`

	// Notes say in plain words what the state is and why, as in [Limiter].
	Notes []Note `json:"notes,omitempty"`

	// Values are the values that the rule has seen most often of late, as in [Limiter].
	Values []Value `json:"values,omitempty"`

	// RetryAfter is how long it takes, in seconds, until such a call passes: 0 if it would pass
	// now or the time is unknown. CannotPass says that it never does under the present rules.
	RetryAfter float64 `json:"retryAfter,omitempty"`
	CannotPass bool    `json:"cannotPass,omitempty"`

	// Blocked counts the calls of the resource that the rule refused, WouldBlock
	// those that it would have refused while it was a shadow.
	Blocked    uint64 `json:"refused"`
	WouldBlock uint64 `json:"wouldBlock"`

	// Demoted counts those that it gave the lowest priority in place of refusing them.
	Demoted uint64 `json:"demoted,omitempty"`
}

// Quota is what remains of a limit on how much passes in a time.
type Quota struct {
	// Effective is the present limit: tokens per window. It is lower than that of the
	// rule while the rule warms up, or while a signal that it follows is high. In an outage of
	// the backend of the fleet it is what this instance lets pass.
	Effective Ceiling `json:"ceiling"`

	// Window is the time that the limit speaks of, in seconds; 0 if Prepaid.
	Window float64 `json:"window"`

	// Prepaid says that the limit is a balance, which is only recharged; Effective is what it has at first.
	Prepaid bool `json:"prepaid,omitempty"`

	// Remaining is how many calls of one token that came now could pass, perhaps
	// after a wait.
	Remaining int64 `json:"remaining"`

	// Reset is how long it takes until there is more, in seconds.
	Reset float64 `json:"reset"`

	// Unknown says that nobody knows Remaining and Reset on this instance: the server of the fleet decides
	// on each call.
	Unknown bool `json:"unknown,omitempty"`
}

// Gauge is a number with its name.
type Gauge struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`

	// Label and LabelValue tell gauges of one name apart, such as "priority" and "low";
	// empty for one that is the only one of its name.
	Label      string `json:"label,omitempty"`
	LabelValue string `json:"labelValue,omitempty"`
}

// Explain asks the engine about a call, which is neither made nor remembered.
func Explain(engine *core.Engine, call Call) Explanation {
	e := Explanation{Call: call, Rules: []Rule{}}
	for _, applied := range engine.Explain(call.Resource, call.options()...) {
		e.Rules = append(e.Rules, appliedRule(engine.Clock(), &applied))
	}
	return e
}

func attributesOf(found []core.AppliedAttribute) (attributes []Attribute) {
	for _, a := range found {
		attributes = append(attributes, Attribute{a.Key, typeOf(a.Value), a.Value.String()})
	}
	return attributes
}

func typeOf(a rule.Attribute) string {
	if _, ok := a.Text(); ok {
		return "text"
	}
	if _, ok := a.Number(); ok {
		return "number"
	}
	if _, ok := a.Boolean(); ok {
		return "boolean"
	}
	return ""
}

func stateOf(c clock.Clock, of *core.Applied) *State {
	s := &State{State: of.State, Blocked: of.Blocked, WouldBlock: of.WouldBlock, Demoted: of.Demoted}
	s.Quota = quotaOf(of.Quota)
	s.Gauges, s.Notes, s.Values = gaugesOf(&of.RuleSnapshot), notesOf(c, &of.RuleSnapshot), valuesOf(&of.RuleSnapshot)
	if of.RetryAfter == rule.Never {
		s.CannotPass = true
	} else {
		s.RetryAfter = max(0, of.RetryAfter).Seconds()
	}
	return s
}

// RuleOf returns what a rule says, without place and state.
func RuleOf(r rule.Rule) Rule {
	r = r.WithDefaults()
	of := Rule{Kind: r.Key().Kind, Name: r.Key().Name, Shadow: r.Target().Shadow}
	for _, f := range rules.Written(r) {
		of.Fields = append(of.Fields, Field{f.Field, f.To})
	}
	return of
}
