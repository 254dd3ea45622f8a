package chart

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
)

// table writes the figures of all resources.
func table(out io.Writer, list []panel) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "offered\tpassed\tblocked\twaited\tmost passed/s\tceiling/s\t  resource")
	for _, p := range list {
		t := p.totals
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t  %s\n", count(t.offered), count(t.passed), count(t.blocked),
			count(t.waited), count(t.mostPassed), t.ceilings(), printable(p.resource))
	}
	_ = w.Flush() // the writer below remembers its errors
}

// ceilings writes between what the ceiling was.
func (t totals) ceilings() string {
	if math.IsNaN(t.lowest) || t.lowest == t.highest {
		return figure(t.lowest)
	}
	return figure(t.lowest) + "–" + figure(t.highest)
}

func count(n int) string { return figure(float64(n)) }
