package chart

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/simulate"
)

// Terminal is what a text is drawn for. The zero value suits any.
type Terminal struct {
	// Width is how many columns there are. Defaults to 80; at least 40.
	Width int

	// Colour adds colours. Without, the text says the same.
	Colour bool
}

// columns returns how many of them the bars may fill: the numbers of the axis
// need the rest.
func (t Terminal) columns() int { return t.Width - 14 }

// rowCount is how many lines the bars of a chart have.
const rowCount = 12

// The marks of a chart, which differ without colour, too.
const (
	passedMark   = '█'
	tracesMark   = '▁' // passed, but less than a line
	blockedMark  = '░'
	offeredMark  = '○'
	ceilingMark  = '━'
	offScaleMark = '↑'
)

// Text draws a chart for each resource, and their figures as a table. The kinds are those whose states it may draw.
func Text(w io.Writer, result simulate.Result, terminal Terminal, kinds ...rule.Definition) error {
	if terminal.Width == 0 {
		terminal.Width = 80
	}
	terminal.Width = max(40, terminal.Width)
	out := bufio.NewWriter(w)
	list := panels(result, terminal.columns(), 4, firstStatesOf(kinds))
	fleet := fleetPanels(result, terminal.columns(), 4)
	for _, p := range slices.Concat(list, fleet) {
		p.text(out, terminal)
	}
	table(out, list, terminal)
	fleetTable(out, fleet, terminal)
	if totals := backendTotals(result.Backend); totals != "" {
		fmt.Fprintf(out, "\n%s\n", clip(totals, terminal.Width))
	}
	return out.Flush()
}

// text draws the chart of one resource.
func (p panel) text(out io.Writer, terminal Terminal) {
	labels := make(map[int]string) // of the lines that have a tick
	margin := 0
	for _, tick := range p.scale.ticks() {
		label := figure(tick)
		labels[p.line(tick)] = label
		margin = max(margin, len(label))
	}
	cells := p.cells(terminal)
	unit := ": " + p.unit + p.averaged()
	fmt.Fprintf(out, "%s%s\n", clip(wording.Cell(p.resource), terminal.Width-len(unit)), unit)
	for line := rowCount; line >= 1; line-- {
		joint := "│"
		if labels[line] != "" {
			joint = "┤"
		}
		fmt.Fprintf(out, "%*s %s%s\n", margin, labels[line], joint, paint(cells[line-1], terminal.Colour, colourOf))
	}
	width := len(cells[0])
	fmt.Fprintf(out, "%*s └%s\n", margin, labels[0], strings.Repeat("─", width))
	fmt.Fprintf(out, "%*s  %s\n", margin, "", p.times(width))
	for _, line := range slices.Concat(p.below(terminal, terminal.Width-margin-2), p.legend(terminal, terminal.Width-margin-2)) {
		fmt.Fprintf(out, "%*s  %s\n", margin, "", line)
	}
	fmt.Fprintln(out)
}

// line returns which line a number is on, counted from the axis.
func (p panel) line(v float64) int { return int(math.Round(v / p.scale.top * rowCount)) }

// wide returns how many columns a point has, and how many of them its bar.
func (p panel) wide(columns int) (cell, bar int) {
	cell = max(1, min(8, columns/max(1, len(p.points))))
	bar = cell
	if cell >= 3 {
		bar--
	}
	return cell, bar
}

// cells draws the lines of the chart, the lowest first.
func (p panel) cells(terminal Terminal) [rowCount][]rune {
	cell, bar := p.wide(terminal.columns())
	var lines [rowCount][]rune
	for i := range lines {
		lines[i] = []rune(strings.Repeat(" ", cell*len(p.points)))
	}
	for i, at := range p.points {
		left := i * cell
		mark := func(line, width int, r rune) {
			for column := left; column < left+width; column++ {
				lines[max(1, min(rowCount, line))-1][column] = r
			}
		}
		for line := 1; line <= p.line(at.passed+at.blocked); line++ {
			mark(line, bar, blockedMark)
		}
		for line := 1; line <= p.line(at.passed); line++ {
			mark(line, bar, passedMark)
		}
		if at.passed > 0 && p.line(at.passed) == 0 {
			mark(1, bar, tracesMark)
		}
		if at.offered > 0 {
			mark(p.line(at.offered), bar, offeredMark)
		}
		p.markCeiling(at, i, cell, mark)
	}
	return lines
}

// markCeiling draws the ceiling of a point. Where it meets what was offered,
// they take turns.
func (p panel) markCeiling(at point, i, cell int, mark func(line, width int, r rune)) {
	switch {
	case math.IsNaN(at.ceiling):
	case at.ceiling > p.scale.top:
		mark(rowCount, cell, offScaleMark)
	case at.offered == 0 || p.line(at.ceiling) != p.line(at.offered):
		mark(p.line(at.ceiling), cell, ceilingMark)
	case cell > 1:
		mark(p.line(at.ceiling), cell/2, ceilingMark)
	case i%2 == 0:
		mark(p.line(at.ceiling), 1, ceilingMark)
	}
}

// times writes the axis of seconds.
func (p panel) times(width int) string {
	if len(p.points) == 0 {
		return ""
	}
	total := p.points[len(p.points)-1].to
	cell := float64(width) / float64(len(p.points)) / float64(p.points[0].to-p.points[0].from) // columns a second
	step := secondsStep(total, max(1, width/6))
	axis := []rune(strings.Repeat(" ", width+20))
	end := 0
	for second := 0; second < total; second += step {
		at := int(float64(second) * cell)
		end = at + copy(axis[at:], []rune(figure(float64(second))))
	}
	return string(axis[:end]) + " s"
}

// legend explains the marks, in lines of so many columns.
func (p panel) legend(terminal Terminal, columns int) []string {
	type entry struct {
		mark   rune
		text   string
		colour func(rune) string
	}
	entries := []entry{
		{passedMark, "passed", colourOf},
		{blockedMark, "blocked", colourOf},
		{offeredMark, "offered", colourOf},
		{ceilingMark, "ceiling (tokens)", colourOf},
	}
	switch last := len(entries) - 1; {
	case math.IsNaN(p.totals.highest):
		entries = entries[:last]
	case p.offScale:
		entries[last].mark, entries[last].text = offScaleMark, "ceiling up to "+figure(p.totals.highest)+" tokens"
	}
	if len(p.lanes) > 0 {
		for _, of := range p.states() {
			entries = append(entries, entry{p.stateMark(of), wording.Cell(of.state), colourOfState})
		}
	}
	const gap = "   "
	lines, used := []string{""}, 0
	for i, e := range entries {
		text, last := paint([]rune{e.mark}, terminal.Colour, e.colour)+" "+e.text, len(lines)-1
		wide := len(gap) + 2 + len(e.text)
		switch {
		case i == 0:
			lines[last] = text
		case used+wide <= columns:
			lines[last] += gap + text
		default:
			lines, used = append(lines, text), 0
		}
		used += wide
	}
	return lines
}

// paint gives marks their colours.
func paint(marks []rune, coloured bool, colourOf func(rune) string) string {
	if !coloured {
		return strings.TrimRight(string(marks), " ")
	}
	var b strings.Builder
	current := ""
	for _, mark := range marks {
		if code := colourOf(mark); code != current {
			b.WriteString("\x1b[" + code + "m")
			current = code
		}
		b.WriteRune(mark)
	}
	b.WriteString("\x1b[0m")
	return b.String()
}

func colourOf(mark rune) string {
	switch mark {
	case passedMark, tracesMark:
		return "34" // blue
	case blockedMark:
		return "33" // yellow
	case ceilingMark, offScaleMark:
		return "1;31" // bold red
	default:
		return "0"
	}
}
