package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/rule"
)

// Problem is one mistake in a document or a set.
type Problem struct {
	// Document, Line and Column say where the mistake stands, counted as in
	// [Position]. Line and Column are 0 for a rule that was made in code.
	Document     string
	Line, Column int

	// Kind and Index say which rule is meant: the kind's list and the place in
	// it, from 0. Kind is empty when the mistake is not in a rule.
	Kind  rule.Kind
	Index int

	// Rule is the rule's name, empty when it has none.
	Rule string

	// Field is the field at fault, such as "limit" or "warmUp.period". Empty
	// when the mistake is not in the value of a known field.
	Field string

	// Message says what is wrong and what to do. With a Field it reads on from
	// the field's name: "is -3: must be…".
	Message string
}

// Error returns the problem as one line: place, rule, field and message.
func (p Problem) Error() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "%v: ", Position{p.Document, p.Line, p.Column})
	}
	if p.Kind != "" {
		fmt.Fprintf(&b, "%s: ", p.subject())
	}
	if p.Field != "" {
		fmt.Fprintf(&b, "%s ", p.Field)
	}
	b.WriteString(p.Message)
	return b.String()
}

// subject names the rule, by its index too where no line tells which it is.
func (p Problem) subject() string {
	switch {
	case p.Rule == "":
		return fmt.Sprintf("%s[%d]", p.Kind, p.Index)
	case p.Line > 0:
		return fmt.Sprintf("%s rule %s", p.Kind, rule.Quote(p.Rule))
	default:
		return fmt.Sprintf("%s[%d] %s", p.Kind, p.Index, rule.Quote(p.Rule))
	}
}

// Problems is every mistake found, ordered by document, line and column. It is
// the error of [Parse], [Merge] and [Set.Validate]; errors.As finds it as
// Problems, and its first mistake as [Problem].
type Problems []Problem

// Error returns the problems, one a line. After a hundred it says only how many
// more there are, so that a document gone wrong all over does not fill a log.
func (ps Problems) Error() string {
	const most = 100
	var lines []string
	for _, p := range ps[:min(most, len(ps))] {
		lines = append(lines, "rules: "+p.Error())
	}
	if more := len(ps) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("rules: and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems as errors, each a [Problem].
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// Err returns the problems in the order of the documents and of their lines, and nil, which is no empty error,
// when there are none. It sorts the slice.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.Document, b.Document),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
		)
	})
	return ps
}
