package sentinel

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
)

// Kind says how grave a finding is.
type Kind string

// The kinds of findings.
const (
	// Unreadable is said of a file: nothing of it was converted.
	Unreadable Kind = "unreadable"
	// LeftOut is said of a rule or of one of its fields: the document does
	// without it.
	LeftOut Kind = "left out"
	// Differs is said of a rule that was converted and will not behave in every
	// case as it did in Sentinel.
	Differs Kind = "differs"
)

// Finding is something that whoever converts rules has to know.
type Finding struct {
	Kind Kind

	// File, Line and Column tell the place that is meant. Line and Column count
	// from 1, the column in characters.
	File         string
	Line, Column int

	// Resource is the one that the rule guards, as far as it says.
	Resource string

	// Message says what it is and what to do.
	Message string

	offset int // of the place, in bytes
}

// String returns the finding as one line, without what could steer a terminal.
func (f Finding) String() string {
	subject := ""
	if f.Resource != "" {
		subject = fmt.Sprintf("rule on %s: ", wording.Quote(f.Resource))
	}
	return wording.Printable(fmt.Sprintf("%s:%d:%d: %s%s: %s", f.File, f.Line, f.Column, subject, f.Kind, f.Message))
}

// place tells the lines and columns of the findings in a file and brings them in
// the order in which they stand there.
func place(findings []Finding, data []byte) {
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
