package main

import (
	"fmt"
	"io"

	"github.com/guptarohit/asciigraph"

	"github.com/penstock-go/penstock/stat"
)

// draw prints what passed in each second as charts and, where colours tell them
// apart, the limits that were in force, or what the breaker refused.
func (r *record) draw(out io.Writer, colours bool) {
	titles := map[string]string{
		browse:  "warm-up: the effective limit rises from 67 to 200 within about 8 s",
		create:  fmt.Sprintf("a limit of 100, and of 40 once second %d has begun", pushAt),
		reserve: "throttle: ten calls at once, four times a second, leave at 50 per second at the most",
		pay:     fmt.Sprintf("breaker: the service fails in seconds %d to %d, and is not called meanwhile but for probes", breakAt, healAt-1),
	}
	for _, s := range r.streams {
		options := []asciigraph.Option{
			asciigraph.Height(8), asciigraph.Width(3 * (duration - 1)), asciigraph.Precision(0), asciigraph.LowerBound(0),
			asciigraph.Caption(fmt.Sprintf("calls per second, seconds 0 to %d", duration-1)),
		}
		series := [][]float64{counts(r.seconds[s.resource])}
		if colours {
			other, legend := r.limits[s.resource], "limit"
			if s.resource == pay {
				other, legend = refusals(r.seconds[s.resource]), "refused"
			}
			series = [][]float64{other, series[0]}
			options = append(options, asciigraph.SeriesColors(asciigraph.Red, asciigraph.Green),
				asciigraph.SeriesLegends(legend, "passed"))
		}
		fmt.Fprintf(out, "\n%s — %s\n%s\n", s.resource, titles[s.resource], asciigraph.PlotMany(series, options...))
	}
}

func refusals(seconds []stat.Second) (refused []float64) {
	for _, s := range seconds {
		refused = append(refused, float64(s.Blocked))
	}
	return refused
}
