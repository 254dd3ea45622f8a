package documents

import (
	"fmt"
	"io"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
)

// Show prints the mistakes, each with its line and a caret below the column.
func (c Collection) Show(w io.Writer) {
	lines := make(map[string][]string)
	for _, d := range c.Documents {
		lines[d.place()] = splitLines(d.Data)
	}
	for _, p := range c.Problems {
		fmt.Fprintln(w, wording.Printable(p.Error()))
		if source := lines[p.Document]; p.Line >= 1 && p.Line <= len(source) {
			number := fmt.Sprintf("%5d", p.Line)
			line, caret := excerpt(source[p.Line-1], p.Column)
			fmt.Fprintf(w, "%s | %s\n%*s | %s\n", number, line, len(number), "", caret)
		}
	}
}

// Summary returns one line with the number of documents, rules and mistakes.
func (c Collection) Summary() string {
	documents := wording.Count(len(c.Documents), "document")
	if len(c.Problems) > 0 {
		return fmt.Sprintf("%s in %d of %s", wording.Count(len(c.Problems), "mistake"), c.faulty(), documents)
	}
	return fmt.Sprintf("%s, %s, no mistakes", documents, wording.Count(c.Rules.Len(), "rule"))
}

// faulty returns how many documents have mistakes.
func (c Collection) faulty() int {
	faulty := make(map[string]bool)
	for _, p := range c.Problems {
		faulty[p.Document] = true
	}
	return len(faulty)
}
