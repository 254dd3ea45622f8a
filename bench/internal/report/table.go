// Package report puts what was measured into tables, and tables into documents.
package report

import (
	"strings"
	"unicode/utf8"
)

// Table is a table in Markdown, aligned so that its source is readable too.
type Table struct {
	Title string // a line above it; may be empty
	Head  []string
	Rows  [][]string
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// String returns the table in Markdown: the first column to the left, the others,
// which are figures, to the right.
func (t *Table) String() string {
	widths := make([]int, len(t.Head))
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell), len("--:"))
		}
	}
	var b strings.Builder
	if t.Title != "" {
		b.WriteString(t.Title + "\n\n")
	}
	writeRow(&b, t.Head, widths)
	for i, width := range widths {
		if i == 0 {
			b.WriteString("|:" + strings.Repeat("-", width+1))
		} else {
			b.WriteString("|" + strings.Repeat("-", width+1) + ":")
		}
	}
	b.WriteString("|\n")
	for _, row := range t.Rows {
		writeRow(&b, row, widths)
	}
	return b.String()
}

func writeRow(b *strings.Builder, cells []string, widths []int) {
	for i, width := range widths {
		padding := strings.Repeat(" ", width-utf8.RuneCountInString(cells[i]))
		if i == 0 {
			b.WriteString("| " + cells[i] + padding + " ")
		} else {
			b.WriteString("| " + padding + cells[i] + " ")
		}
	}
	b.WriteString("|\n")
}
