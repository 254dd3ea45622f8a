package main

import (
	"fmt"
	"io"

	"github.com/guptarohit/asciigraph"
)

// draw prints what passed in each second as charts and, where colours tell them
// apart, the ceilings that were in force.
func (r *record) draw(out io.Writer, colours bool) {
	titles := map[string]string{
		browse:  "warm-up: the ceiling rises from 67 to 200 within about 8 s",
		create:  fmt.Sprintf("reject: a ceiling of 100, and of 40 once second %d has begun", pushAt),
		reserve: "throttle: ten calls at once, four times a second, leave at 50 per second at the most",
	}
	for _, s := range r.streams {
		options := []asciigraph.Option{
			asciigraph.Height(8), asciigraph.Width(3 * (duration - 1)), asciigraph.Precision(0), asciigraph.LowerBound(0),
			asciigraph.Caption(fmt.Sprintf("calls per second, seconds 0 to %d", duration-1)),
		}
		series := [][]float64{counts(r.seconds[s.resource])}
		if colours {
			series = [][]float64{r.ceilings[s.resource], series[0]}
			options = append(options, asciigraph.SeriesColors(asciigraph.Red, asciigraph.Green),
				asciigraph.SeriesLegends("ceiling", "passed"))
		}
		fmt.Fprintf(out, "\n%s — %s\n%s\n", s.resource, titles[s.resource], asciigraph.PlotMany(series, options...))
	}
}
