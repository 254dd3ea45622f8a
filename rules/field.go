package rules

import (
	"slices"
	"strings"
	"time"
)

// A field is one field of the rules of type R: how a document spells it and
// where a rule keeps it.
type field[R any] struct {
	// path is the field's name. One with a dot, "warmUp.period", stands in a
	// mapping of its own in the document.
	path string

	// about says what the field is, for whoever writes documents, and byDefault
	// what leaving it out means, where that is not one value for all rules.
	about, byDefault string

	// missing is the complaint about a document that lacks the field; empty
	// when it may be left out.
	missing string

	// needs are the fields that its range depends on. While one of them cannot
	// be read, nothing is said of the range.
	needs []string

	read  func(*R, node) (fault string) // takes the value over from a document
	write func(*R) node                 // the value as documents have it
	check func(*R) (fault string)       // judges what the rule itself leaves open; nil when that is nothing
	reset func(*R)                      // as if it had been left out
	equal func(a, b *R) bool
}

// nameField is a field of text that is written to logs and metrics.
func nameField[R any](path string, at func(*R) *string) field[R] {
	f := newField(path, at, readText, writeText[string])
	f.check = func(rule *R) string { return checkName(*at(rule)) }
	return f
}

// choiceField is a field of text that is one of the given values.
func choiceField[R any, V ~string](path string, at func(*R) *V, values ...V) field[R] {
	return newField(path, at, func(n node) (V, string) { return readChoice(n, values) }, writeText[V])
}

func numberField[R any](path string, at func(*R) *float64) field[R] {
	return newField(path, at, readNumber, writeNumber)
}

func wholeField[R any](path string, at func(*R) *int) field[R] {
	return newField(path, at, readWhole, writeWhole)
}

func booleanField[R any](path string, at func(*R) *bool) field[R] {
	return newField(path, at, readBoolean, writeBoolean)
}

// invertedField is a booleanField that documents spell the other way round: what
// the rule keeps as false, its default, is true there.
func invertedField[R any](path string, at func(*R) *bool) field[R] {
	return newField(path, at,
		func(n node) (bool, string) {
			value, fault := readBoolean(n)
			return !value && fault == "", fault
		},
		func(v bool) node { return writeBoolean(!v) })
}

func durationField[R any](path string, at func(*R) *time.Duration) field[R] {
	return newField(path, at, readDuration, writeDuration)
}

// newField makes a field of a place in the rule and a way to read and to write
// what stands there.
func newField[R any, V comparable](
	path string, at func(*R) *V, read func(node) (V, string), write func(V) node,
) field[R] {
	return field[R]{
		path: path,
		read: func(rule *R, n node) string {
			value, fault := read(n)
			*at(rule) = value
			return fault
		},
		write: func(rule *R) node { return write(*at(rule)) },
		reset: func(rule *R) {
			var zero V
			*at(rule) = zero
		},
		equal: func(a, b *R) bool { return *at(a) == *at(b) },
	}
}

func (f field[R]) required(missing string) field[R] {
	f.missing = missing
	return f
}

func (f field[R]) given(needs ...string) field[R] {
	f.needs = needs
	return f
}

func (f field[R]) says(about string) field[R] {
	f.about = about
	return f
}

func (f field[R]) otherwise(byDefault string) field[R] {
	f.byDefault = byDefault
	return f
}

// accepts makes documents able to write the value in another way. It is written
// back as the value.
func (f field[R]) accepts(other, value string) field[R] {
	read := f.read
	f.read = func(rule *R, n node) string {
		if n.kind == kindText && n.text == other {
			n.text = value
		}
		return read(rule, n)
	}
	return f
}

// A formerField is one that older documents have and that is never written: another
// field says now what it said.
type formerField[R any] struct {
	path string // without a dot
	now  string // the field that says it now

	// read takes the value over into the field that says it now, after all other
	// fields have been read. The fault may be that the two contradict each other.
	read func(*R, node) (fault string)
}

// fields is what a rule has, in the order of writing.
type fields[R any] []field[R]

// names returns what may stand in the mapping that the prefix leads to: "" is
// the rule itself, "warmUp." the mapping below it.
func (fs fields[R]) names(prefix string) []string {
	var names []string
	for _, f := range fs {
		rest, below := strings.CutPrefix(f.path, prefix)
		name, _, _ := strings.Cut(rest, ".")
		if below && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// find returns the field of the path, nil when that leads to a mapping.
func (fs fields[R]) find(path string) *field[R] {
	for i := range fs {
		if fs[i].path == path {
			return &fs[i]
		}
	}
	return nil
}
