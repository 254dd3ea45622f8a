package chart

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/simulate"
)

// Sizes of the picture, in its own units: pixels at 100 %.
const (
	pictureWidth = 960
	plotLeft     = 112
	plotWidth    = 824
	plotHeight   = 200
	headHeight   = 92 // title and legend
	panelHeight  = 290
	footHeight   = 12
	namesAtMost  = 100 // characters of a resource's name
)

// SVG writes a picture with a chart for each resource. The title stands above;
// it may be empty.
func SVG(w io.Writer, title string, result simulate.Result, kinds ...rule.Definition) error {
	out := picture{bufio.NewWriter(w)}
	list := panels(result, plotWidth/3, 5, firstStatesOf(kinds))
	list = append(list, fleetPanels(result, plotWidth/3, 5)...)
	out.begin(title, list)
	top := headHeight
	for _, p := range list {
		out.panel(p, top)
		top += p.height()
	}
	out.line(`</svg>`)
	return out.Flush()
}

// picture is an SVG document that is being written.
type picture struct{ *bufio.Writer }

func (o picture) line(format string, args ...any) { fmt.Fprintf(o, format+"\n", args...) }

// begin writes what is above the charts. Passed and blocked are the blue and the
// orange of Okabe and Ito, whom the colour-blind can tell apart; the hatching,
// the marks and the dashes do it without colour.
func (o picture) begin(title string, list []panel) {
	height, states := headHeight+footHeight, false
	for _, p := range list {
		height += p.height()
		states = states || len(p.lanes) > 0 && len(p.outages) == 0
	}
	o.line(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-labelledby="title summary">`,
		pictureWidth, height)
	o.line(`<title id="title">%s</title>`, escape(title))
	o.line(`<desc id="summary">%s</desc>`, escape(summary(list)))
	o.line(`<style>
text { font: 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1a1a1a }
.title { font-size: 18px; font-weight: 600 }
.name { font-size: 15px; font-weight: 600 }
.passed { fill: #0072b2 }
.blocked { fill: url(#hatching); stroke: #b35900; stroke-width: .5 }
.offered { fill: none; stroke: #1a1a1a; stroke-width: 1.2 }
.offered-dot { fill: #fff; stroke: #1a1a1a; stroke-width: 1.2 }
.halo { fill: none; stroke: #fff; stroke-width: 4.5 }
.ceiling { fill: none; stroke: #b3006b; stroke-width: 2.5; stroke-dasharray: 8 4 }
.limit { fill: none; stroke: #b3006b; stroke-width: 2; stroke-dasharray: 8 4 }
.in-flight { fill: #9ad0ec; stroke: #0072b2 }
.closed { fill: #d5efe4; stroke: #00805b; stroke-width: .5 }
.open { fill: #b03a00; stroke: #b03a00; stroke-width: .5 }
.halfOpen { fill: url(#stripes); stroke: #6b6300; stroke-width: .5 }
.other { fill: #e0e0e0; stroke: #1a1a1a; stroke-width: .5 }
.state { font-size: 11px }
.on-open { fill: #fff }
.grid { stroke: #d9d9d9 }
.axis { fill: none; stroke: #1a1a1a }
</style>
<defs><pattern id="hatching" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" fill="#fdebd3"/><rect width="2.4" height="6" fill="#d97400"/></pattern><pattern id="stripes" width="5" height="5" patternUnits="userSpaceOnUse"><rect width="5" height="5" fill="#fffbd6"/><rect width="1.5" height="5" fill="#d9cc1f"/></pattern></defs>
<rect width="100%%" height="100%%" fill="#fff"/>`)
	o.line(`<text class="title" x="24" y="34">%s</text>`, escape(clip(title, namesAtMost)))
	o.legend(24, 62, states)
}

// legend explains the marks, and if there are any the states.
func (o picture) legend(x, y int, states bool) {
	o.line(`<g transform="translate(%d %d)">`, x, y)
	o.line(`<rect class="passed" x="0" y="-10" width="18" height="12"/><text x="26" y="1">passed</text>`)
	o.line(`<rect class="blocked" x="110" y="-10" width="18" height="12"/><text x="136" y="1">blocked</text>`)
	o.line(`<path class="offered" d="M226 -4h24"/><circle class="offered-dot" cx="238" cy="-4" r="3"/><text x="258" y="1">offered</text>`)
	o.line(`<path class="ceiling" d="M346 -4h30"/><text x="384" y="1">ceiling, tokens per second</text>`)
	if states {
		for i, state := range []string{"closed", "halfOpen", "open"} {
			o.line(`<rect class="%s" x="%d" y="-10" width="18" height="12"/><text x="%d" y="1">%[1]s</text>`, state, 586+110*i, 612+110*i)
		}
	}
	o.line(`</g>`)
}

// panel writes the chart of one resource, below the given height.
func (o picture) panel(p panel, y int) {
	o.line(`<g transform="translate(%d %d)">`, plotLeft, y+34)
	o.line(`<text class="name" x="-88" y="-16">%s</text>`, escape(clip(p.resource, namesAtMost)))
	if p.offScale {
		o.line(`<text x="%d" y="-14" text-anchor="end">the ceiling, up to %s, is above the chart</text>`, plotWidth, figure(p.totals.highest))
	}
	for _, tick := range p.scale.ticks() {
		o.line(`<path class="grid" d="M0 %.1fH%d"/><text x="-8" y="%.1f" text-anchor="end">%s</text>`,
			p.y(tick), plotWidth, p.y(tick)+4.5, figure(tick))
	}
	o.line(`<text transform="translate(-90 %d) rotate(-90)" text-anchor="middle">%s%s</text>`, plotHeight/2, p.unit, p.averaged())
	for _, at := range p.points {
		o.bar(p, at)
	}
	o.outages(p)
	o.offered(p)
	o.ceiling(p)
	o.times(p)
	o.below(p, laneTop)
	o.line(`</g>`)
}

// y returns how far below the top of the plot a number is.
func (p panel) y(v float64) float64 { return plotHeight * (1 - v/p.scale.top) }

// x returns how far to the right a second begins.
func (p panel) x(second int) float64 {
	if len(p.points) == 0 {
		return 0
	}
	return plotWidth * float64(second) / float64(p.points[len(p.points)-1].to)
}

// bar draws what passed in a point and, on it, what was blocked.
func (o picture) bar(p panel, at point) {
	left, right := p.x(at.from), p.x(at.to)
	gap := min(4, 0.2*(right-left))
	o.line(`<g><title>%s</title>`, escape(at.describe()))
	rect := func(class string, from, to float64) {
		if to > from {
			o.line(`<rect class="%s" x="%.2f" y="%.2f" width="%.2f" height="%.2f"/>`,
				class, left+gap/2, p.y(to), right-left-gap, p.y(from)-p.y(to))
		}
	}
	rect("passed", 0, at.passed)
	rect("blocked", at.passed, at.passed+at.blocked)
	o.line(`</g>`)
}

// describe returns the figures of a point in words.
func (p point) describe() string {
	when := fmt.Sprintf("second %d", p.from)
	if p.to > p.from+1 {
		when = fmt.Sprintf("seconds %d to %d, each on average", p.from, p.to-1)
	}
	text := fmt.Sprintf("%s: %s offered, %s passed (%s of them after a wait), %s blocked, ceiling %s", when,
		figure(p.offered), figure(p.passed), figure(p.waited), figure(p.blocked), figure(p.ceiling))
	if p.failed > 0 {
		text += ", " + figure(p.failed) + " failed"
	}
	if p.inFlight > 0 {
		text += ", up to " + count(p.inFlight) + " in flight"
	}
	return text
}

// offered draws a line through what was offered, with dots where there is room.
func (o picture) offered(p panel) {
	if len(p.points) == 0 {
		return
	}
	var line, dots strings.Builder
	for i, at := range p.points {
		x, y := (p.x(at.from)+p.x(at.to))/2, p.y(at.offered)
		fmt.Fprintf(&line, "%c%.2f %.2f", "ML"[min(i, 1)], x, y)
		if len(p.points) <= 90 {
			fmt.Fprintf(&dots, `<circle class="offered-dot" cx="%.2f" cy="%.2f" r="3"/>`, x, y)
		}
	}
	o.line(`<path class="offered" d="%s"/>%s`, &line, &dots)
}

// ceiling draws the ceiling as steps, where there is one on the scale.
func (o picture) ceiling(p panel) {
	var line strings.Builder
	pen := "M"
	for _, at := range p.points {
		if math.IsNaN(at.ceiling) || at.ceiling > p.scale.top {
			pen = "M"
			continue
		}
		fmt.Fprintf(&line, "%s%.2f %.2fH%.2f", pen, p.x(at.from), p.y(at.ceiling), p.x(at.to))
		pen = "L"
	}
	if line.Len() > 0 {
		o.line(`<path class="halo" d="%s"/><path class="ceiling" d="%[1]s"/>`, &line)
	}
}

// times draws the axis of seconds.
func (o picture) times(p panel) {
	o.line(`<path class="axis" d="M0 0V%d H%d"/>`, plotHeight, plotWidth)
	total := 0
	if len(p.points) > 0 {
		total = p.points[len(p.points)-1].to
	}
	step := secondsStep(total, 20)
	for second := 0; second <= total; second += step {
		x := p.x(second)
		o.line(`<path class="axis" d="M%.2f %dv5"/>`, x, plotHeight)
		o.line(`<text x="%.2f" y="%d" text-anchor="middle">%s</text>`, x, plotHeight+20, figure(float64(second)))
	}
	o.line(`<text x="%d" y="%d" text-anchor="middle">seconds</text>`, plotWidth/2, plotHeight+38)
}

// summary describes the picture for those who cannot see it.
func summary(list []panel) string {
	var lines []string
	for _, p := range list {
		t := p.totals
		lines = append(lines, fmt.Sprintf("%s: of %s calls, %s passed and %s were blocked; ceiling %s tokens per second.",
			p.resource, count(t.offered), count(t.passed), count(t.blocked), t.ceilings()))
		if t.mostInFlight > 0 {
			lines = append(lines, fmt.Sprintf("%s calls failed; up to %s were in flight.", count(t.failed), count(t.mostInFlight)))
		}
		for _, g := range p.more {
			lines = append(lines, g.title()+".")
		}
		for _, l := range p.lanes {
			lines = append(lines, fmt.Sprintf("%s (%s) changed its state %d times.", l.rule, l.kind, l.changes))
		}
	}
	return strings.Join(lines, " ")
}

// escape makes text of names and numbers that XML can hold.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(wording.Cell(text))) // a Builder never fails
	return b.String()
}
