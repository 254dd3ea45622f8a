package chart

import (
	"fmt"
	"strings"
)

// Sizes of what is below the axis of a chart.
const (
	laneTop        = 248 // below the top of the plot
	inFlightHeight = 72  // with its title
	inFlightPlot   = 40  // of it, the plot
	laneHeight     = 40  // with its title
	bandHeight     = 16  // of it, the band
	textInBand     = 62  // width of a band that has room for the name of its state
)

// height returns how much of the picture the chart takes.
func (p panel) height() int {
	height := panelHeight + laneHeight*len(p.lanes) + inFlightHeight*len(p.more)
	if p.totals.mostInFlight > 0 {
		height += inFlightHeight
	}
	return height
}

// below draws the calls in flight, limits and the states of rules, from a height on.
func (o picture) below(p panel, y int) {
	if most := p.totals.mostInFlight; most > 0 {
		o.line(`<text x="0" y="%d">calls in flight, up to %s</text>`, y+12, count(most))
		o.inFlight(p, y+20)
		y += inFlightHeight
	}
	for _, g := range p.more {
		o.graph(p, g, y)
		y += inFlightHeight
	}
	for _, l := range p.lanes {
		o.line(`<text x="0" y="%d">%s</text>`, y+12, escape(clip(l.rule+" ("+l.kind+")", namesAtMost)))
		o.lane(l, y+18)
		y += laneHeight
	}
}

// inFlight draws the highest number of calls in flight in each second as steps.
func (o picture) inFlight(p panel, top int) {
	bottom := top + inFlightPlot
	var area strings.Builder
	fmt.Fprintf(&area, "M0 %d", bottom)
	for _, at := range p.points {
		y := float64(bottom) - inFlightPlot*float64(at.inFlight)/float64(p.totals.mostInFlight)
		fmt.Fprintf(&area, "L%.2f %.2fH%.2f", p.x(at.from), y, p.x(at.to))
	}
	fmt.Fprintf(&area, "V%dZ", bottom)
	o.line(`<path class="in-flight" d="%s"/>`, &area)
	o.line(`<path class="axis" d="M0 %dV%dH%d"/>`, top, bottom, plotWidth)
	o.line(`<text x="-8" y="%d" text-anchor="end">%s</text><text x="-8" y="%d" text-anchor="end">0</text>`,
		top+9, count(p.totals.mostInFlight), bottom+4)
}

// lane draws the states of a rule as a band.
func (o picture) lane(l lane, top int) {
	end := l.spans[len(l.spans)-1].to
	for _, s := range l.thinned(plotWidth) {
		left, right := plotWidth*s.from/end, plotWidth*s.to/end
		o.line(`<g><title>%s: %s from %s s to %s s</title>`, escape(l.rule), escape(s.state), figure(s.from), figure(s.to))
		class := l.class(s.state)
		o.line(`<rect class="%s" x="%.2f" y="%d" width="%.2f" height="%d"/>`, class, left, top, right-left, bandHeight)
		if right-left >= textInBand {
			o.line(`<text class="state on-%s" x="%.2f" y="%d" text-anchor="middle">%s</text>`,
				class, (left+right)/2, top+12, escape(clip(s.state, max(10, int((right-left)/6)))))
		}
		o.line(`</g>`)
	}
}

// class returns the class of style of a state, which is named after its look.
func (l lane) class(state string) look {
	if state == backendEmptied {
		return bad
	}
	return l.show(state).look
}
