package rule

import (
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/internal/document"
)

// Spec describes a kind of rule. Kind, Common and New are required. R is a plain
// value: copies share nothing, and two rules are the same rule when they are equal. Of the functions that get
// a pointer to a rule only Common and Defaults may write to it, or have others write; it never changes once
// the rule is in force, so that limiters may keep it.
type Spec[R comparable] struct {
	Kind   Kind   // also the name of the list in documents; in camel case
	Phase  Phase  // when rules of the kind are asked, relative to other kinds
	Reason Reason // of its refusals: what adapters answer by

	// Common returns pointers to the fields that every kind has.
	Common func(*R) Common

	// Fields are the kind's own fields of documents, in the order in which they are written, after those that say
	// what a rule is for, such as resource, and before origin and shadow: these come from Common. One that has the name
	// of one of these stands in its place, and is kept where that is.
	Fields []Field[R]

	// Former are fields that only older documents have.
	Former []document.FormerField[R]

	// Examples are rules that together show every field of the kind. "penstock example" prints them, and adds
	// one that shows the fields of [Common] that they leave out.
	Examples []Example[R]

	// Defaults fills in the fields that a rule leaves out. The name needs no default: it is
	// the resource or the pattern. nil if there is nothing to fill in.
	Defaults func(*R)

	// Validate returns all mistakes in the fields of the kind; Defaults has been applied.
	// nil if there cannot be any.
	Validate func(*R) []Fault

	// Attributes returns the keys of the attributes of calls that the rule looks at, as
	// in "user", at most [MaxKeys]; nil if none. [Call.Attribute] is the attribute of
	// the one key, or a composite one if there are several. "origin" is the name of the
	// caller, unless the call has an attribute of that key. nil for kinds that look at none.
	Attributes func(*R) []string

	// Lists returns the names of the lists that the rule refers to, which its limiters
	// find in [Env.Lists]; nil if none. nil for kinds that refer to none.
	Lists func(*R) []string

	// NamesValues says whether the rule says of some values of its attributes how it decides on
	// them, by writing or listing them: replays of recorded calls, which may have hashes in place of
	// values, cannot tell then. nil for kinds that look at values only to tell them apart.
	NamesValues func(*R) bool

	// Signals returns the signals that the rule reads, which its limiters find in
	// [Env.Signals]: only these are sampled. nil for kinds that read none.
	Signals func(*R) []Signal

	// Hints returns signals that the rule reads, too, if the engine has a source of signals, and does
	// without if it has none or that cannot read them. nil for kinds that read none.
	Hints func(*R) []Signal

	// Fleet says whether all instances of the service share the limit of the rule, by
	// [Env.Fleet]. nil for kinds that have no such limits.
	Fleet func(*R) bool

	// Places says whether what instances share is places of calls under way, which takes a backend that
	// counts: a rule is refused where the engine has another one. It is only called for rules that Fleet
	// says are for all instances. nil for kinds that have no such rules.
	Places func(*R) bool

	// Demotes says whether the rule gives calls the lowest priority in place of refusing them: where
	// a limiter of the rule refuses a call for now, the call passes it, takes nothing, and the rules
	// after it see [PrioritySheddable]. [Forbidden] calls are refused nevertheless. No call waits for
	// such a rule. nil for kinds that have no such rules.
	Demotes func(*R) bool

	// Counts says which calls take tokens of the rule, by how they end: a call takes them when it
	// enters, and the engine gives those of the others back at their ends, by [Settler.Settle]. So
	// calls under way never take more than there is. Shadow rules count likewise. nil for kinds whose
	// rules count every call.
	Counts func(*R) Counts

	// Answer returns what adapters answer to refusals of the rule. nil for kinds that
	// leave it to the Reason.
	Answer func(*R) Answer

	// Forbids returns what adapters answer to calls of which limiters of the rule say that they
	// are [Forbidden]. nil for kinds that leave it to the reason Denied.
	Forbids func(*R) Answer

	// Ends returns when the rule stops having any effect; the zero time if it never does.
	// nil for kinds whose rules do not end.
	Ends func(*R) time.Time

	// Compile returns what all limiters of one version of a rule have in common, for
	// [Env.Compiled], not nil. It is called once for each version, however many limiters that has. nil for
	// kinds that compile nothing.
	Compile func(rule *R, version uint64) any

	// New returns the limiter of a rule, which is valid and complete, on a resource
	// that it did not apply to before.
	New func(rule *R, env Env) Limiter

	// Adopt returns the limiter of a changed rule, which counts the same calls, whatever its origin and whether
	// it is a shadow rule, and goes on from what the present limiter has counted; nil to start anew. It must not
	// change what calls get from the present one. Calls may ask either of them until the new one is activated or asked:
	// from then on the old one answers Stale. A nil Adopt starts anew at every change.
	Adopt func(present Limiter, rule *R, env Env) Limiter

	// Gauges are numbers that limiters of the kind show.
	Gauges []Gauge

	// LimitMoves is set if limiters adapt their limit themselves: simulations then record
	// the gauges "limit" and "in_flight", which the kind must have.
	LimitMoves bool

	// States are the states that a limiter can be in, the one in which it begins first; nil if the
	// kind has none.
	States []string

	// Controls are the states that can be forced; see [Controllable].
	Controls []string
}

// Example is a rule that shows some of the fields in a document.
type Example[R any] struct {
	About  string
	Rule   R
	Fields []string // in the order of writing
}

// Type is a kind of rule whose rules have the type R, made by [Define]. It never changes.
type Type[R comparable] struct {
	Definition

	spec    Spec[R]
	checked []*Field[R] // those that have a check
	own     []*Field[R] // of these those that are not of Common
}

// Define makes a kind of rule. It panics when the spec is not complete, has two fields of one name, or an example
// of a field that it has not, which is a mistake of the program.
func Define[R comparable](spec Spec[R]) *Type[R] {
	switch {
	case spec.Kind == "":
		panic("rule: Define of a kind without a name")
	case spec.Common == nil || spec.New == nil:
		panic(fmt.Sprintf("rule: Define of kind %q: Common and New are required", spec.Kind))
	}
	var none R
	if c := spec.Common(&none); c.Name == nil || c.Resource == nil || c.Match == nil || c.Shared == nil ||
		c.Origin == nil || c.Shadow == nil {
		panic(fmt.Sprintf("rule: Define of kind %q: Common lacks a pointer: only Except and Related may be nil", spec.Kind))
	}
	spec.Fields = spec.allFields()
	spec.mustBeSound()
	t := &Type[R]{spec: spec}
	d := &definition{
		kind: spec.Kind, phase: spec.Phase, reason: spec.Reason, gauges: spec.Gauges, limitMoves: spec.LimitMoves,
		canShare: spec.Fleet != nil, canDemote: spec.Demotes != nil, states: spec.States, controls: spec.Controls,
		draft: func() Rule { return t.Of(none) }, examples: t.examples,
	}
	t.Definition = d
	for i, f := range spec.Fields {
		if f.check != nil {
			t.checked = append(t.checked, &spec.Fields[i])
			if !f.isCommon {
				t.own = append(t.own, &spec.Fields[i])
			}
		}
		d.fields = append(d.fields, document.Field{
			Path: f.Path, About: f.About, Default: f.Default, Missing: f.Missing, Instead: f.Instead, Needs: f.Needs,
		})
	}
	for _, f := range spec.Former {
		d.former = append(d.former, document.Former{Path: f.Path, Now: f.Now})
	}
	return t
}

// examples returns rules that show all fields between them.
func (t *Type[R]) examples() []Example[Rule] {
	var examples []Example[Rule]
	for _, e := range slices.Concat(t.spec.Examples, t.spec.commonExample()) {
		examples = append(examples, Example[Rule]{e.About, t.Of(e.Rule), e.Fields})
	}
	return examples
}

// Of returns a rule as a [Rule], as it is.
func (t *Type[R]) Of(rule R) Rule { return &typedRule[R]{of: t, rule: rule} }

// complete returns a rule as a [Rule], with its defaults filled in.
func (t *Type[R]) complete(rule *R) *typedRule[R] {
	r := new(typedRule[R])
	t.completeTo(r, rule)
	return r
}

// completeTo makes a rule, of which nothing was compiled, that of the kind with its defaults filled in.
func (t *Type[R]) completeTo(r *typedRule[R], rule *R) {
	r.of, r.traits, r.rule = t, traits{complete: true}, *rule
	t.spec.Common(&r.rule).setName()
	if t.spec.Defaults != nil {
		t.spec.Defaults(&r.rule)
	}
}

// Compare compares so many rules of the kind, which are complete, with others, place by place; present returns the
// one at a place. Where they are not the same it calls different with the present one and the other, complete, nil
// where there is none, until that returns false.
func (t *Type[R]) Compare(
	count int, present func(place int) Rule, others []R, different func(place int, present, other Rule) bool,
) {
	var other *typedRule[R] // kept for the next place if it is the same
	for place := range max(count, len(others)) {
		var before Rule
		if place < count {
			before = present(place)
		}
		if place >= len(others) {
			if !different(place, before, nil) {
				return
			}
			continue
		}
		if other == nil {
			other = new(typedRule[R])
		}
		t.completeTo(other, &others[place])
		if before != nil && before.Equal(other) {
			continue
		}
		found := other
		found.learn()
		if other = nil; !different(place, before, found) {
			return
		}
	}
}

// NameOf returns the name of a rule: its Name, else the resource, else the pattern, else
// the default of the kind.
func (t *Type[R]) NameOf(rule *R) string {
	if name := t.spec.Common(rule).fullName(); name != "" {
		return name
	}
	complete := t.WithDefaults(*rule)
	return *t.spec.Common(&complete).Name
}

// WithDefaults returns the rule with its defaults filled in.
func (t *Type[R]) WithDefaults(rule R) R { return t.complete(&rule).rule }

// Faults returns every mistake in a rule, none when it is sound. It judges the rule as
// WithDefaults completes it.
func (t *Type[R]) Faults(rule R) []Fault { return t.Of(rule).Faults() }

// faults returns the mistakes of a rule: given is the rule as written, complete has its
// defaults.
func (t *Type[R]) faults(given, complete *R) []Fault {
	var faults Faults
	c := t.spec.Common(complete)
	if !c.isPlain() || *c.Resource == "" || *c.Resource == OtherResources { // else nothing can be wrong, as of most
		target := c.target()
		target.validate(&faults)
	}
	if t.spec.Validate != nil {
		faults = append(faults, t.spec.Validate(complete)...)
	}
	if given != complete {
		c = t.spec.Common(given)
	}
	checked := t.own
	if !c.isVisible() { // as most are, of which the fields need not be looked at one by one
		checked = t.checked
	}
	for _, f := range checked {
		message := f.check(given)
		if message == "" || slices.ContainsFunc(faults, func(fault Fault) bool { return fault.Field == f.Path }) {
			continue
		}
		faults = append(faults, Fault{Field: f.Path, Message: message})
	}
	if len(faults) == 0 && t.spec.Attributes != nil {
		if n := len(t.spec.Attributes(complete)); n > MaxKeys {
			faults.Add("name", "is that of a rule that looks at %d attributes: %d is the most", n, MaxKeys)
		}
	}
	return faults
}

func (t *Type[R]) field(path string) *Field[R] {
	for i := range t.spec.Fields {
		if t.spec.Fields[i].Path == path {
			return &t.spec.Fields[i]
		}
	}
	panic(fmt.Sprintf("rule: kind %q has no field %q", t.spec.Kind, path))
}
