package chart

import (
	"math"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
)

// levels is how many heights a mark has in a line that shows numbers. They follow
// one another in Unicode, from '▁' to '█'.
const levels = 8

// below returns the lines below the axis: calls in flight, limits and the states of
// rules, each with a title. A line has a cell for each point, as the bars have.
func (p panel) below(terminal Terminal, columns int) []string {
	var lines []string
	cell, bar := p.wide(terminal.columns())
	row := func(colourOf func(rune) string, width int, mark func(point) rune) {
		var marks []rune
		for _, at := range p.points {
			marks = append(marks, []rune(strings.Repeat(string(mark(at)), width)+strings.Repeat(" ", cell-width))...)
		}
		lines = append(lines, paint(marks, terminal.Colour, colourOf))
	}
	if most := p.totals.mostInFlight; most > 0 {
		lines = append(lines, clip("calls in flight, up to "+count(most), columns))
		row(func(rune) string { return "36" }, bar, func(at point) rune { // cyan
			return level(float64(at.inFlight) / float64(most))
		})
	}
	for _, g := range p.more {
		for _, g := range g.split() {
			lines = append(lines, clip(wording.Cell(g.title()), columns))
			i := -1
			row(func(rune) string { return "36" }, bar, func(point) rune {
				i++
				return level(g.area[i] / g.most)
			})
		}
	}
	for _, l := range p.lanes {
		lines = append(lines, clip(wording.Cell(l.rule+" ("+l.kind+")"), columns))
		row(colourOfState, cell, func(at point) rune { return p.stateMark(l.show(l.longest(float64(at.from), float64(at.to)))) })
	}
	return lines
}

// level returns the mark of a share of the most.
func level(share float64) rune {
	if !(share > 0) { // NaN too
		return ' '
	}
	return '▁' + rune(min(levels, math.Ceil(share*levels))-1)
}

// otherMarks are the marks of states without a mark of their own, in the order of the legend.
const otherMarks = "◇◆□■▽▼"

// stateMark returns the mark of a state, which differs without colour, too.
func (p panel) stateMark(of shown) rune {
	switch of.look {
	case good:
		return '·'
	case bad:
		return '▓'
	case between:
		return '▒'
	default:
		marks := []rune(otherMarks)
		return marks[max(0, slices.Index(p.states(), of))%len(marks)]
	}
}

func colourOfState(mark rune) string {
	switch mark {
	case '·':
		return "32" // green
	case '▓':
		return "31" // red
	case '▒':
		return "33" // yellow
	default:
		return "0"
	}
}
