package overload

import (
	"fmt"
	"math"
	"strings"
)

// Sizes of a picture, in pixels.
const (
	pictureWidth = 1026
	rowHeight    = 92
	plotHeight   = 64
	plotWidth    = 380
	headHeight   = 70
	nameWidth    = 150
	columnWidth  = 436
)

// draw returns the picture as SVG: a row of graphs for each protection.
func (p image) draw(protections []protection, outcomes []*outcome) string {
	var b strings.Builder
	height := headHeight + rowHeight*len(protections) + 12
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-labelledby="title">`, pictureWidth, height)
	line(`<title id="title">%s</title>`, p.title)
	line(`<style>
text { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1a1a1a }
.title { font-size: 16px; font-weight: 600 }
.name { font-size: 13px; font-weight: 600 }
.line0 { fill: none; stroke: #0072b2; stroke-width: 1.8 }
.line1 { fill: none; stroke: #b3006b; stroke-width: 1.8; stroke-dasharray: 7 4 }
.line2 { fill: none; stroke: #8a5a00; stroke-width: 1.8; stroke-dasharray: 2 3 }
.grid { stroke: #d9d9d9 }
.axis { fill: none; stroke: #1a1a1a }
</style>
<rect width="100%%" height="100%%" fill="#fff"/>`)
	line(`<text class="title" x="16" y="26">%s</text>`, p.title)
	for i, g := range p.graphs {
		line(`<text x="%d" y="52">%s</text>`, nameWidth+36+i*columnWidth, g.title)
	}
	for i, by := range protections {
		y := headHeight + i*rowHeight
		line(`<text class="name" x="16" y="%d">%s</text>`, y+plotHeight/2, by.name)
		for j, g := range p.graphs {
			line(`<g transform="translate(%d %d)">`, nameWidth+36+j*columnWidth, y)
			b.WriteString(g.draw(outcomes[i]))
			line(`</g>`)
		}
	}
	line(`</svg>`)
	return b.String()
}

// draw returns the graph of one run. What is above the scale is drawn at its top.
func (g timeGraph) draw(o *outcome) string {
	var b strings.Builder
	spans := o.seconds()
	y := func(v float64) float64 { return plotHeight * (1 - min(v, g.top)/g.top) }
	for _, tick := range []float64{0, roundDown(g.top / 2), roundDown(g.top)} {
		fmt.Fprintf(&b, `<path class="grid" d="M0 %.1fH%d"/><text x="-6" y="%.1f" text-anchor="end">%s</text>`+"\n", y(tick), plotWidth, y(tick)+4, number(tick))
	}
	for i, l := range g.lines {
		var path strings.Builder
		pen := "M"
		for j, in := range spans {
			v := l.measure(o, in)
			if math.IsNaN(v) {
				pen = "M"
				continue
			}
			fmt.Fprintf(&path, "%s%.1f %.1f", pen, plotWidth*(float64(j)+0.5)/float64(len(spans)), y(v))
			pen = "L"
		}
		fmt.Fprintf(&b, `<path class="line%d" d="%s"/>`+"\n", i, &path)
	}
	fmt.Fprintf(&b, `<path class="axis" d="M0 0V%dH%d"/>`+"\n", plotHeight, plotWidth)
	for _, second := range []int{0, len(spans) / 2, len(spans)} {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%d s</text>`+"\n",
			plotWidth*float64(second)/float64(len(spans)), plotHeight+16, second)
	}
	return b.String()
}

// roundDown returns the next lower number with one digit.
func roundDown(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	return math.Floor(v/power) * power
}
