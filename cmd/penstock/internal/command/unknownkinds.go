package command

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/documents"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
)

// unknownKindsHelp is what the help of commands that write documents says of kinds that they
// do not know.
const unknownKindsHelp = `Rules of kinds that a service brings itself, and this penstock does not know, are
left as they are and not checked: a warning names the document and the kind. A name
that is nearly that of a known kind counts as a misspelled one, and is a mistake
without --allow-unknown-kinds.`

// unknownKindsFlag adds the flag that lets kinds be that are not known.
func unknownKindsFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("allow-unknown-kinds", false, "leave rules of unknown kinds as they are, as those of a service that brings its own")
}

// unlessMisspelled returns how documents are judged that are compared or written.
func unlessMisspelled(allow bool) documents.UnknownKinds {
	if allow {
		return documents.LeftOut
	}
	return documents.MisspelledAreMistakes
}

// unknownKinds returns a warning for each document and kind that is not known.
func unknownKinds(unknown []documents.UnknownKind) []string {
	warnings := make([]string, len(unknown))
	for i, u := range unknown {
		warnings[i] = holding(u) + ": they are left as they are, and not checked"
	}
	return warnings
}

func holding(u documents.UnknownKind) string {
	return fmt.Sprintf("document %s has rules of the kind %s, which this penstock does not know", wording.Quote(u.Document), u.Kind)
}

// warnOfUnknownKinds warns of rules of unknown kinds in documents that take the place of others,
// and of those that no document has any more.
func (env Env) warnOfUnknownKinds(from, to documents.Collection) {
	for _, warning := range unknownKinds(to.Unknown) {
		env.warn(warning)
	}
	for _, u := range from.Unknown {
		stays := func(other documents.UnknownKind) bool { return other.Document == u.Document && other.Kind == u.Kind }
		if !slices.ContainsFunc(to.Unknown, stays) {
			env.warn(holding(u) + ": they are removed")
		}
	}
}

// namesOf returns the kinds, each once, in the order of their names.
func namesOf(unknown []documents.UnknownKind) string {
	var names []string
	for _, u := range unknown {
		names = append(names, string(u.Kind))
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// hintAtKinds says what to do about documents in which unknown kinds are mistakes.
func hintAtKinds(to io.Writer, c documents.Collection, flag bool) {
	if !c.KindsRejected {
		return
	}
	hint := "A kind that a service brings itself takes a penstock that knows it: see \"Kinds of your own\" in docs/rules.md."
	if flag {
		hint += " Or --allow-unknown-kinds leaves its rules unchecked."
	}
	fmt.Fprintln(to, hint)
}
