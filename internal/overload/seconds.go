package overload

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// writeSeconds writes what happened in each second with the first seed, by class.
func writeSeconds(out io.Writer, protections []protection, reports [][]report) {
	for _, row := range reports {
		for i, r := range row {
			fmt.Fprintf(out, "%s under %s\n", r.scenario.name, protections[i].name)
			limits := make(map[int][]string)
			for _, l := range r.first.Limits {
				text := fmt.Sprintf("%s %s: no limit, %d under way, %d wait", l.Rule, l.Resource, l.InFlight, l.Queued)
				if l.Limit != nil {
					text = fmt.Sprintf("%s %s: limit %.0f, %d under way, %d wait", l.Rule, l.Resource, *l.Limit, l.InFlight, l.Queued)
				}
				limits[int(l.T)] = append(limits[int(l.T)], text)
			}
			w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
			fmt.Fprint(w, "s\tclass\toffered\tpassed\trefused\tgood\tfailed\tunder way\tp50 ms\tp99 ms\t\n")
			for j, s := range r.first.Seconds {
				fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t", s.Second, s.Resource, s.Offered, s.Passed, s.Blocked, s.Good, s.Failed,
					s.InFlight, inMilliseconds(s.RTP50), inMilliseconds(s.RTP99))
				if j == 0 || r.first.Seconds[j-1].Second != s.Second {
					fmt.Fprint(w, " "+strings.Join(limits[s.Second], "; "))
				}
				fmt.Fprintln(w)
			}
			_ = w.Flush() // to standard output or a buffer
			for _, s := range r.first.Signals {
				if s.Value != nil && *s.Value > 0 {
					fmt.Fprintf(out, "%4.0f s: %s %.4g\n", s.T, s.Signal, *s.Value)
				}
			}
		}
	}
}

func inMilliseconds(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	return number(1000 * *seconds)
}
