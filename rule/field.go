package rule

import (
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/internal/document"
)

// Field is one field of the rules of type R: how a document spells it and where a rule
// keeps it. [FieldOf] and [ChoiceField] make fields.
type Field[R any] struct {
	// Path is the field's name. One with a dot, "warmUp.period", stands in a mapping
	// of its own in the document.
	Path string

	// About describes the field to those who write documents. Default says what leaving it
	// out means, if that is not one value for all rules.
	About, Default string

	// Missing is the message for a document that lacks the field; "" if it may be left out.
	// Instead are fields of which documents may have one in its place.
	Missing string
	Instead []string

	// Needs are the fields that its range depends on. While one of them cannot be read, the
	// range is not checked.
	Needs []string

	read  func(*R, document.Value) (fault string)
	write func(*R) document.Value
	check func(*R) (fault string) // judges what the rule itself leaves open; nil when that is nothing
	reset func(*R)                // as if it had been left out
	equal func(a, b *R) bool

	isCommon bool // it is one of the fields of Common that are text
}

// FieldOf returns the field of a place in the rule, which documents spell by its type: a text, which is written
// to logs and metrics and must do for that, such as a name; a number, whole or not; true or false; a duration with its
// unit; an instant in RFC 3339, "2030-06-01T00:00:00Z", which the rule has in UTC; a list of texts, of which a
// document may write a single one without brackets; or a mapping from texts, numbers or booleans to numbers. A text
// that is one of a few has a [ChoiceField].
func FieldOf[R any, V string | float64 | int | bool | time.Duration | time.Time | Strings | NumberMap](
	path string, at func(*R) *V,
) Field[R] {
	switch at := any(at).(type) {
	case func(*R) *string:
		return textField(path, at)
	case func(*R) *float64:
		return newField(path, at, document.ReadNumber, document.NumberValue)
	case func(*R) *int:
		return newField(path, at, document.ReadWhole, document.WholeValue)
	case func(*R) *bool:
		return newField(path, at, document.ReadBoolean, document.BooleanValue)
	case func(*R) *time.Duration:
		return newField(path, at, document.ReadDuration, document.DurationValue)
	case func(*R) *time.Time:
		return newField(path, at, document.ReadTime, document.TimeValue)
	case func(*R) *Strings:
		return stringsField(path, at)
	case func(*R) *NumberMap:
		return numberMapField(path, at)
	}
	panic("rule: a type that the constraint does not have")
}

// textField is a field of text that is written to logs and metrics, such as a name.
func textField[R any](path string, at func(*R) *string) Field[R] {
	f := newField(path, at, document.ReadText, document.TextValue[string])
	f.check = func(rule *R) string { return CheckName(*at(rule)) }
	return f
}

// ChoiceField is a field of text that is one of the given values.
func ChoiceField[R any, V ~string](path string, at func(*R) *V, values ...V) Field[R] {
	return newField(path, at, func(v document.Value) (V, string) { return document.ReadChoice(v, values) }, document.TextValue[V])
}

// invertedField is a boolean field that documents spell the other way round: what
// the rule keeps as false, its default, is true there.
func invertedField[R any](path string, at func(*R) *bool) Field[R] {
	return newField(path, at,
		func(v document.Value) (bool, string) {
			value, fault := document.ReadBoolean(v)
			return !value && fault == "", fault
		},
		func(v bool) document.Value { return document.BooleanValue(!v) })
}

// newField makes a field of a place in the rule and a way to read and to write
// what stands there.
func newField[R any, V comparable](
	path string, at func(*R) *V, read func(document.Value) (V, string), write func(V) document.Value,
) Field[R] {
	return Field[R]{
		Path: path,
		read: func(rule *R, v document.Value) string {
			value, fault := read(v)
			*at(rule) = value
			return fault
		},
		write: func(rule *R) document.Value { return write(*at(rule)) },
		reset: func(rule *R) {
			var zero V
			*at(rule) = zero
		},
		equal: func(a, b *R) bool { return *at(a) == *at(b) },
	}
}

// Accepts returns the field with another spelling of a value. It is written back as the
// value.
func (f Field[R]) Accepts(other, value string) Field[R] {
	read := f.read
	f.read = func(rule *R, v document.Value) string {
		if v.Type == document.Text && v.Text == other {
			v.Text = value
		}
		return read(rule, v)
	}
	return f
}

// Required returns the field as one that documents must have, unless they have one of others, with the message for
// those that lack it: "is missing: write …". Rules from code may still lack it: [Spec.Validate]
// checks those.
func (f Field[R]) Required(missing string, unless ...string) Field[R] {
	f.Missing = missing
	f.Instead = unless
	return f
}

// NotZero returns the field as one that documents cannot set to its zero value, which would
// be the same as leaving it out. The advice says what to write: "must be from 1 …".
func (f Field[R]) NotZero(advice string) Field[R] {
	read := f.read
	f.read = func(rule *R, v document.Value) string {
		fault := read(rule, v)
		var zero R
		if fault == "" && f.equal(rule, &zero) {
			return fmt.Sprintf("is %v: %s", v, advice)
		}
		return fault
	}
	return f
}

// Given returns the field with [Field.Needs].
func (f Field[R]) Given(needs ...string) Field[R] {
	f.Needs = needs
	return f
}

// Says returns the field with its description, [Field.About].
func (f Field[R]) Says(about string) Field[R] {
	f.About = about
	return f
}

// Otherwise returns the field with [Field.Default]: what leaving it out means.
func (f Field[R]) Otherwise(byDefault string) Field[R] {
	f.Default = byDefault
	return f
}

// allFields returns the fields of documents: name, resource, match, except and perResource, those of the kind, then
// origin, related and shadow. A kind has except and related only if its [Common] has. A field of the kind that has the
// name of one of these stands in its place.
func (s *Spec[R]) allFields() []Field[R] {
	common := func(f Field[R]) Field[R] {
		f.isCommon = true
		return f
	}
	at, has := s.Common, s.Common(new(R))
	list := []Field[R]{
		common(FieldOf("name", func(r *R) *string { return at(r).Name }).
			Says("identifies the rule in errors, logs and metrics, and over reloads").Otherwise("the resource, or the pattern")),
		common(FieldOf("resource", func(r *R) *string { return at(r).Resource }).Given("match").
			Says("the exact name of the guarded resource").Otherwise("match instead")),
		common(FieldOf("match", func(r *R) *string { return at(r).Match }).
			Says("instead of a resource: a pattern of names, a glob or ~ and a regular expression").Otherwise("resource instead")),
	}
	if has.Except != nil {
		list = append(list, common(FieldOf("except", func(r *R) *Strings { return at(r).Except }).Given("match").
			NotZero("name what the rule is not for, or remove the field").
			Says("names or patterns of resources that match, but that the rule is not for").Otherwise("none")))
	}
	list = append(list, invertedField("perResource", func(r *R) *bool { return at(r).Shared }).Given("match").
		Says("false: all resources that match share one limit"))
	own := len(list)
	list = append(list, common(FieldOf("origin", func(r *R) *string { return at(r).Origin }).
		Says("only calls of this caller; other: of callers that no rule names").Otherwise("all calls")))
	if has.Related != nil {
		list = append(list, FieldOf("related", func(r *R) *string { return at(r).Related }).Given("resource", "algorithm").
			Says("windows: count the passes of that resource instead").Otherwise("none"))
	}
	list = append(list, FieldOf("shadow", func(r *R) *bool { return at(r).Shadow }).
		Says("decide and count, but let every call through"))
	var others []Field[R]
	for _, f := range s.Fields {
		if i := slices.IndexFunc(list, func(c Field[R]) bool { return c.Path == f.Path }); i >= 0 {
			list[i] = f
		} else {
			others = append(others, f)
		}
	}
	return slices.Insert(list, own, others...)
}
