package chart

import (
	"fmt"
	"math"
	"slices"

	"github.com/penstock-go/penstock/simulate"
)

// panel is what is drawn of one resource.
type panel struct {
	resource string // or what else the title says
	unit     string // of the bars
	points   []point
	scale    scale
	offScale bool // a ceiling is above the scale
	totals   totals
	lanes    []lane // of rules that have states
	more     []graph
	outages  []simulate.OutageSpan // of the backend, if the panel is about it
}

// point is one second, or some in a row on average.
type point struct {
	from, to                 int // seconds: to is the one after the last
	offered, passed, blocked float64
	waited                   float64
	failed                   float64
	inFlight                 int     // the most of any of the seconds
	ceiling                  float64 // NaN where there is none
}

// totals are the figures of a resource.
type totals struct {
	offered, passed, blocked, waited int
	failed                           int
	mostPassed                       int // in a second
	mostInFlight                     int // at a time
	seconds                          int
	lowest, highest                  float64 // ceilings, NaN where there is none
}

// panels returns what to draw, for each resource in order of appearance. No
// more points are made than fit; ticks is about how many of them the scale has.
func panels(result simulate.Result, fit, ticks int, first firstStates) []panel {
	var names []string
	rows := make(map[string][]simulate.Second)
	for _, s := range result.Seconds {
		if rows[s.Resource] == nil {
			names = append(names, s.Resource)
		}
		rows[s.Resource] = append(rows[s.Resource], s)
	}
	list := make([]panel, len(names))
	several := slices.ContainsFunc(result.States, func(s simulate.StateChange) bool { return s.Instance > 0 })
	for i, name := range names {
		list[i] = newPanel(name, rows[name], fit, ticks)
		list[i].more = list[i].graphs(result, names)
		if several {
			list[i].more = append(list[i].more, list[i].stateGraphs(result.States, names, first)...)
		} else {
			list[i].lanes = lanes(result.States, name, names, float64(len(rows[name])), first)
		}
	}
	return list
}

func newPanel(resource string, rows []simulate.Second, fit, ticks int) panel {
	p := panel{resource: resource, unit: "calls per second", totals: sumUp(rows)}
	each := (len(rows) + fit - 1) / fit
	for from := 0; from < len(rows); from += each {
		p.points = append(p.points, average(rows[from:min(from+each, len(rows))]))
	}
	top, ceiling := 0.0, 0.0
	for _, at := range p.points {
		top = max(top, at.offered, at.passed+at.blocked)
		if !math.IsNaN(at.ceiling) {
			ceiling = max(ceiling, at.ceiling)
		}
	}
	// A ceiling far above the traffic would leave nothing of it to be seen.
	if top == 0 || ceiling <= 3*top {
		top = max(top, ceiling)
	}
	p.scale = newScale(top, ticks)
	if p.offScale = ceiling > p.scale.top; p.offScale {
		p.scale.top += p.scale.step // room to point up
	}
	return p
}

// average makes one point of some seconds.
func average(rows []simulate.Second) point {
	p := point{from: rows[0].Second, to: rows[len(rows)-1].Second + 1}
	ceilings, n := 0.0, float64(len(rows))
	for _, s := range rows {
		p.offered += float64(s.Offered) / n
		p.passed += float64(s.Passed) / n
		p.blocked += float64(s.Blocked) / n
		p.waited += float64(s.Waited) / n
		p.failed += float64(s.Failed) / n
		p.inFlight = max(p.inFlight, s.InFlight)
		if s.Ceiling == nil {
			ceilings = math.NaN()
		} else {
			ceilings += *s.Ceiling / n
		}
	}
	p.ceiling = ceilings
	return p
}

func sumUp(rows []simulate.Second) totals {
	t := totals{lowest: math.NaN(), highest: math.NaN(), seconds: len(rows)}
	for _, s := range rows {
		t.offered += s.Offered
		t.passed += s.Passed
		t.blocked += s.Blocked
		t.waited += s.Waited
		t.failed += s.Failed
		t.mostInFlight = max(t.mostInFlight, s.InFlight)
		t.mostPassed = max(t.mostPassed, s.Passed)
		if s.Ceiling != nil {
			t.lowest = least(t.lowest, *s.Ceiling)
			t.highest = -least(-t.highest, -*s.Ceiling)
		}
	}
	return t
}

// mean returns how many calls passed in a second, on average.
func (t totals) mean() float64 { return float64(t.passed) / float64(t.seconds) }

// least returns the lesser number; NaN is none.
func least(a, b float64) float64 {
	if math.IsNaN(a) || b < a {
		return b
	}
	return a
}

// averaged says how many seconds a bar stands for, "" for one.
func (p panel) averaged() string {
	if len(p.points) == 0 || p.points[0].to == p.points[0].from+1 {
		return ""
	}
	return fmt.Sprintf(", mean of %d s", p.points[0].to-p.points[0].from)
}
