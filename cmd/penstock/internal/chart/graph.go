package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/simulate"
)

// graph is numbers over time that are drawn below the calls of a resource: an area, and
// perhaps a line on the same scale.
type graph struct {
	of   string    // the rule that it is about, with a colon, or ""
	name string    // what the area shows
	area []float64 // a number for each point; NaN where there is none
	line []float64 // the same; nil if there is none
	what string    // the line shows; "" if there is none
	most float64   // that the area or the line shows, more than 0
}

// title says what the graph shows.
func (g graph) title() string {
	if math.IsInf(highest(g.area), -1) {
		return g.of + g.name + ": unknown"
	}
	if g.line == nil {
		return fmt.Sprintf("%s%s, up to %s", g.of, g.name, figure(highest(g.area)))
	}
	return fmt.Sprintf("%s%s, up to %s; dashed: %s, %s–%s", g.of, g.name, figure(highest(g.area)), g.what,
		figure(-highest(negated(g.line))), figure(highest(g.line)))
}

// split returns the area and the line as graphs of their own.
func (g graph) split() []graph {
	if g.line == nil {
		return []graph{g}
	}
	line := newGraph(g.of, g.what, g.line)
	g.line = nil
	g.most = max(highest(g.area), tiny)
	return []graph{g, line}
}

// tiny is a number that stands for the most of a graph that shows nothing.
const tiny = 1e-9

func newGraph(of, name string, area []float64) graph {
	return graph{of: of, name: name, area: area, most: max(highest(area), tiny)}
}

// graphs returns what is drawn of the limits of a resource. Those of several resources
// together, and signals, are drawn with the last resource.
func (p panel) graphs(result simulate.Result, resources []string) []graph {
	last := p.resource == resources[len(resources)-1]
	var list []graph
	for _, rows := range limitsByRule(result.Limits) {
		of := rows[0]
		if of.Resource == p.resource || last && !slices.Contains(resources, of.Resource) {
			list = append(list, p.limitGraphs(of.Rule+" ("+of.Kind+"): ", rows)...)
		}
	}
	if last {
		list = append(list, p.signalGraphs(result.Signals)...)
	}
	return list
}

// byLimiter returns the rows of each limiter, in the order of the first.
func byLimiter[R any](rows []R, of func(R) limiter) [][]R {
	index := make(map[limiter]int)
	var list [][]R
	for _, row := range rows {
		i, known := index[of(row)]
		if !known {
			i = len(list)
			index[of(row)] = i
			list = append(list, nil)
		}
		list[i] = append(list[i], row)
	}
	return list
}

// limiter is a rule on a resource.
type limiter struct{ kind, rule, resource string }

func limitsByRule(rows []simulate.Limit) [][]simulate.Limit {
	return byLimiter(rows, func(r simulate.Limit) limiter { return limiter{r.Kind, r.Rule, r.Resource} })
}

// limitGraphs draws a limiter: the calls under way with their limit, those that wait, and
// those of each priority that are shed, as far as there are any.
func (p panel) limitGraphs(name string, rows []simulate.Limit) []graph {
	of := func(value func(simulate.Limit) float64) []float64 {
		values := p.perPoint(len(rows), func(i int) (float64, float64) { return rows[i].T, value(rows[i]) })
		return values
	}
	inFlight := newGraph(name, "calls in flight", of(func(l simulate.Limit) float64 { return float64(l.InFlight) }))
	limit := of(func(l simulate.Limit) float64 {
		if l.Limit == nil {
			return math.NaN()
		}
		return *l.Limit
	})
	if most := highest(limit); most >= 0 {
		inFlight.line, inFlight.what, inFlight.most = limit, "limit", max(inFlight.most, most)
	}
	list := []graph{inFlight}
	more := []graph{newGraph(name, "calls waiting", of(func(l simulate.Limit) float64 { return float64(l.Queued) }))}
	for _, priority := range priorities() {
		more = append(more, newGraph(name, "shed per second, "+priority, of(func(l simulate.Limit) float64 {
			return float64(l.Shed[priority])
		})))
	}
	for _, g := range more {
		if g.most > tiny {
			list = append(list, g)
		}
	}
	return list
}

// priorities are the names of priorities, the least important first, for they are shed
// first.
func priorities() []string {
	var names []string
	for _, p := range rule.Priorities() {
		names = append(names, p.String())
	}
	slices.Reverse(names)
	return names
}

// signalGraphs draws what signals show.
func (p panel) signalGraphs(rows []simulate.SignalValue) []graph {
	var names []string
	for _, row := range rows {
		if !slices.Contains(names, row.Signal) {
			names = append(names, row.Signal)
		}
	}
	var list []graph
	for _, name := range names {
		list = append(list, newGraph("", "signal "+name, p.perPoint(len(rows), func(i int) (float64, float64) {
			if rows[i].Signal != name || rows[i].Value == nil {
				return rows[i].T, math.NaN()
			}
			return rows[i].T, *rows[i].Value
		})))
	}
	return list
}

// perPoint returns the mean of the values of each point, NaN where there are none. The
// values are given by an index with their time, which does not go back.
func (p panel) perPoint(count int, at func(i int) (t, value float64)) []float64 {
	means, i := make([]float64, len(p.points)), 0
	for j, point := range p.points {
		sum, n := 0.0, 0.0
		for ; i < count; i++ {
			t, value := at(i)
			if t >= float64(point.to) {
				break
			}
			if !math.IsNaN(value) {
				sum, n = sum+value, n+1
			}
		}
		means[j] = sum / n // NaN of none
	}
	return means
}

// highest returns the highest of some numbers, -Inf of none.
func highest(values []float64) float64 {
	most := math.Inf(-1)
	for _, v := range values {
		if v > most {
			most = v
		}
	}
	return most
}

func negated(values []float64) []float64 {
	list := make([]float64, len(values))
	for i, v := range values {
		list[i] = -v
	}
	return list
}

// graph draws a graph with its title, below a height.
func (o picture) graph(p panel, g graph, y int) {
	o.line(`<text x="0" y="%d">%s</text>`, y+12, escape(clip(g.title(), namesAtMost)))
	top := y + 20
	bottom := top + inFlightPlot
	height := func(v float64) float64 { return float64(bottom) - inFlightPlot*max(0, v)/g.most }
	var area, line strings.Builder
	pen := "M"
	for i, at := range p.points {
		left, right := p.x(at.from), p.x(at.to)
		if v := g.area[i]; !math.IsNaN(v) {
			fmt.Fprintf(&area, "M%.2f %dV%.2fH%.2fV%[2]dZ", left, bottom, height(v), right)
		}
		if g.line == nil || math.IsNaN(g.line[i]) {
			pen = "M"
			continue
		}
		fmt.Fprintf(&line, "%s%.2f %.2fH%.2f", pen, left, height(g.line[i]), right)
		pen = "L"
	}
	if area.Len() > 0 {
		o.line(`<path class="in-flight" d="%s"/>`, &area)
	}
	if line.Len() > 0 {
		o.line(`<path class="limit" d="%s"/>`, &line)
	}
	o.line(`<path class="axis" d="M0 %dV%dH%d"/>`, top, bottom, plotWidth)
	if g.most > tiny {
		o.line(`<text x="-8" y="%d" text-anchor="end">%s</text>`, top+9, figure(g.most))
	}
	o.line(`<text x="-8" y="%d" text-anchor="end">0</text>`, bottom+4)
}
