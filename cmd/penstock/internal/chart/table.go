package chart

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
)

// tableWidth is how many columns a table takes without names.
const tableWidth = 64

// table writes the figures of all resources: in columns or, where those are too
// many for the terminal, below each other.
func table(out io.Writer, list []panel, terminal Terminal) {
	headings := []string{"offered", "passed", "blocked", "waited", "most passed/s", "ceiling/s"}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	narrow := terminal.Width < tableWidth
	if !narrow {
		fmt.Fprintf(w, "%s\t  resource\n", strings.Join(headings, "\t"))
	}
	for _, p := range list {
		figures, name := p.totals.figures(), wording.Cell(p.resource)
		if !narrow {
			fmt.Fprintf(w, "%s\t  %s\n", strings.Join(figures, "\t"), name)
			continue
		}
		fmt.Fprintln(w, clip(name, terminal.Width))
		for i, heading := range headings {
			fmt.Fprintf(w, "%s\t%s\t\n", heading, figures[i])
		}
	}
	_ = w.Flush() // the writer below remembers its errors
}

// figures returns what a table has of a resource.
func (t totals) figures() []string {
	return []string{count(t.offered), count(t.passed), count(t.blocked), count(t.waited), count(t.mostPassed), t.ceilings()}
}

// ceilings writes between what the ceiling was.
func (t totals) ceilings() string {
	if math.IsNaN(t.lowest) || t.lowest == t.highest {
		return figure(t.lowest)
	}
	return figure(t.lowest) + "–" + figure(t.highest)
}

func count(n int) string { return figure(float64(n)) }
