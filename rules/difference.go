package rules

import (
	"fmt"
	"strings"

	"github.com/penstock-go/penstock/rule"
)

// Change is what became of a rule between two sets.
type Change string

// The changes, in the order in which [Diff] has them.
const (
	Added   Change = "added"
	Changed Change = "changed"
	Removed Change = "removed"
)

// Difference is one rule that two sets do not have alike, or a [Domain], of the kind "serve".
type Difference struct {
	Kind   rule.Kind
	Name   string
	Change Change

	// Fields are the fields that differ, in the order of writing: of a rule that
	// was added or removed, all that its document has to say, but for the name.
	Fields []FieldDifference
}

// String returns the difference as one line:
//
//	flow rule "orders:pay" changed: limit 5 -> 10, maxWait none -> 500ms
func (d Difference) String() string {
	fields := make([]string, len(d.Fields))
	for i, f := range d.Fields {
		switch d.Change {
		case Added:
			fields[i] = f.Field + " " + f.To
		case Removed:
			fields[i] = f.Field + " " + f.From
		default:
			fields[i] = f.String()
		}
	}
	subject := fmt.Sprintf("%s rule %s %v", d.Kind, rule.Quote(d.Name), d.Change)
	if d.Kind == kindServe {
		subject = fmt.Sprintf("%s of domain %s %v", d.Kind, rule.Quote(d.Name), d.Change)
	}
	if len(fields) == 0 {
		return subject
	}
	return subject + ": " + strings.Join(fields, ", ")
}

// FieldDifference is one field in which two rules differ.
type FieldDifference struct {
	// Field is the field's name, such as "limit" or "warmUp.period".
	Field string

	// From and To are its values as documents write them, less quotes. A field
	// that a document leaves out has its default. Empty means none: there is no
	// rule, or it neither has the field nor a default for it.
	From, To string
}

// String returns the field and both values: "limit 5 -> 10".
func (f FieldDifference) String() string {
	or := func(value string) string {
		if value == "" {
			return "none"
		}
		return value
	}
	return fmt.Sprintf("%s %s -> %s", f.Field, or(f.From), or(f.To))
}
