package convert

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
)

// Kind says how serious a finding is.
type Kind string

// The kinds of findings.
const (
	// Unreadable is for a file: nothing of it was converted.
	Unreadable Kind = "unreadable"
	// LeftOut is for a rule or a part of one that has an effect where it comes from: the
	// document does not have it.
	LeftOut Kind = "left out"
	// Differs is for a rule that was converted and will in some cases behave
	// differently than where it comes from.
	Differs Kind = "differs"
	// Understood is for what has no effect where it comes from, such as a rule that is
	// switched off or a field that nothing reads: the document does not have it either.
	Understood Kind = "understood"
)

// Finding is something that people who convert rules have to know.
type Finding struct {
	Kind Kind

	// File, Line and Column are the position. Line and Column count from 1, the column
	// in characters.
	File         string
	Line, Column int

	// Resource is the one that the rule guards; "" if it names none, or if the finding
	// is about more than one rule.
	Resource string

	// Message says what the problem is and what to do.
	Message string

	offset int // of the position, in bytes
}

// String returns the finding as one line, without control characters.
func (f Finding) String() string {
	subject := ""
	if f.Resource != "" {
		subject = fmt.Sprintf("rule on %s: ", wording.Quote(f.Resource))
	}
	return wording.Printable(fmt.Sprintf("%s:%d:%d: %s%s: %s", f.File, f.Line, f.Column, subject, f.Kind, f.Message))
}

// locate sets the lines and columns of the findings in a file and sorts them by
// position.
func locate(findings []Finding, data []byte) {
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(a.offset, b.offset) })
	line, column, at := 1, 1, 0
	for i := range findings {
		f := &findings[i]
		for at < f.offset && at < len(data) {
			r, size := utf8.DecodeRune(data[at:])
			at += size
			if column++; r == '\n' {
				line, column = line+1, 1
			}
		}
		f.Line, f.Column = line, column
	}
}
