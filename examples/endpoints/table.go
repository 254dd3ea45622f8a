package main

import (
	"fmt"
	"io"
)

// mostRefused is which share of the requests to an endpoint that is short of nothing may be refused.
const mostRefused = 0.01

// report prints, for each phase, the share of the requests to each endpoint that was answered in
// time and that was refused. It returns an error if the last protection refused calls while nothing
// was short, but for the pool of the reports.
func report(out io.Writer, phases []phase, results []*result) (wrong error) {
	for i, p := range phases {
		fmt.Fprintf(out, "\n%-22s", p.name)
		for _, by := range protections() {
			fmt.Fprintf(out, "│ %-20s", by.name)
		}
		fmt.Fprintf(out, "\n%-22s", "")
		for range results {
			fmt.Fprintf(out, "│ %9s %9s  ", "in time", "refused")
		}
		fmt.Fprintln(out)
		for _, e := range endpoints() {
			fmt.Fprintf(out, "  %-20s", e.path)
			for n, r := range results {
				o := r.phases[i][e.path]
				refused := share(o.refused, o.requests)
				fmt.Fprintf(out, "│ %7.1f %% %7.1f %%  ", 100*share(o.answered, o.requests), 100*refused)
				if n == len(results)-1 && p.computing == 1 && e.path != "/reports" && refused > mostRefused {
					wrong = fmt.Errorf("%s: %.1f %% of %s were refused, which is short of nothing", p.name, 100*refused, e.path)
				}
			}
			fmt.Fprintf(out, "│ %s\n", e.about)
		}
	}
	return wrong
}

func share(part, of int) float64 { return float64(part) / float64(max(of, 1)) }
