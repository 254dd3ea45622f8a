package chart

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/simulate"
)

// Events writes a line for each call, in order of arrival. The times are in
// seconds.
func Events(w io.Writer, events []simulate.Event) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out)
	const lines = 1000 // that are brought into columns together
	for from := 0; from < len(events); from += lines {
		columns := tabwriter.NewWriter(out, 14, 0, 2, ' ', 0)
		for _, e := range events[from:min(from+lines, len(events))] {
			fmt.Fprintf(columns, "%s s\t%s", strconv.FormatFloat(e.T, 'f', -1, 64), e.Outcome)
			if e.Wait > 0 {
				fmt.Fprintf(columns, " after %s s", strconv.FormatFloat(e.Wait, 'f', -1, 64))
			}
			if e.Rule != "" {
				fmt.Fprintf(columns, " by %s rule %s", e.Kind, wording.Cell(e.Rule))
			}
			if e.End != nil && (e.Failed || *e.End > e.T+e.Wait) {
				fmt.Fprintf(columns, ", %s at %s s", ending(e.Failed), strconv.FormatFloat(*e.End, 'f', -1, 64))
			}
			fmt.Fprintf(columns, "\t%s", wording.Cell(e.Resource))
			for _, attr := range e.Attrs {
				fmt.Fprintf(columns, " %s=%s", wording.Cell(attr.Name), wording.Cell(fmt.Sprint(attr.Value)))
			}
			if e.Instance > 0 {
				fmt.Fprintf(columns, " on instance %d", e.Instance)
			}
			fmt.Fprintln(columns)
		}
		if err := columns.Flush(); err != nil {
			return err
		}
	}
	return out.Flush()
}

func ending(failed bool) string {
	if failed {
		return "failed"
	}
	return "ended"
}
