package chart

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
)

// tableWidth is how many columns a table of so many figures takes without names.
func tableWidth(figures int) int { return 11*figures - 2 }

// table writes the figures of all resources.
func table(out io.Writer, list []panel, terminal Terminal) {
	headings, figures := figuresOf(list)
	writeTable(out, headings, figures, "resource", list, terminal)
}

// fleetTable writes the figures of the limits that instances share, if there are any.
func fleetTable(out io.Writer, list []panel, terminal Terminal) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(out)
	var figures [][]string
	for _, p := range list {
		t := p.totals
		figures = append(figures, []string{
			count(t.passed), count(t.blocked), figure(t.mean()), count(t.mostPassed), t.ceilings(),
		})
	}
	writeTable(out, []string{"passed", "refused", "passed/s", "most passed/s", "limit/s"}, figures, "limit of the fleet, in tokens", list, terminal)
}

// writeTable writes the figures of panels: in columns or, where those are too many for the
// terminal, below each other.
func writeTable(out io.Writer, headings []string, figures [][]string, what string, list []panel, terminal Terminal) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	narrow := terminal.Width < tableWidth(len(headings))
	if !narrow {
		fmt.Fprintf(w, "%s\t  %s\n", strings.Join(headings, "\t"), what)
	}
	for i, p := range list {
		name := wording.Cell(p.resource)
		if !narrow {
			fmt.Fprintf(w, "%s\t  %s\n", strings.Join(figures[i], "\t"), name)
			continue
		}
		fmt.Fprintln(w, clip(name, terminal.Width))
		for j, heading := range headings {
			fmt.Fprintf(w, "%s\t%s\t\n", heading, figures[i][j])
		}
	}
	_ = w.Flush() // the writer below remembers its errors
}

// figuresOf returns the headings of a table and the figures of each resource.
// Failures and calls in flight are left out where there are none at all.
func figuresOf(list []panel) (headings []string, figures [][]string) {
	headings = []string{"offered", "passed", "blocked", "waited", "most passed/s", "ceiling/s"}
	failed, inFlight := false, false
	for _, p := range list {
		failed = failed || p.totals.failed > 0
		inFlight = inFlight || p.totals.mostInFlight > 0
	}
	if failed {
		headings = append(headings, "failed")
	}
	if inFlight {
		headings = append(headings, "most in flight")
	}
	for _, p := range list {
		t := p.totals
		row := []string{count(t.offered), count(t.passed), count(t.blocked), count(t.waited), count(t.mostPassed), t.ceilings()}
		if failed {
			row = append(row, count(t.failed))
		}
		if inFlight {
			row = append(row, count(t.mostInFlight))
		}
		figures = append(figures, row)
	}
	return headings, figures
}

// ceilings writes between what the ceiling was.
func (t totals) ceilings() string {
	if math.IsNaN(t.lowest) || t.lowest == t.highest {
		return figure(t.lowest)
	}
	return figure(t.lowest) + "–" + figure(t.highest)
}

func count(n int) string { return figure(float64(n)) }
