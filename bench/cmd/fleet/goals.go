package main

import (
	"fmt"
	"math"

	"github.com/penstock-go/penstock/bench/internal/report"
	"github.com/penstock-go/penstock/fleet"
)

// goal is what all runs of some sort have to reach.
type goal struct {
	about   string
	applies func(*result) bool
	value   func(*result) float64
	atLeast bool // the bound is the least, otherwise the most
	bound   float64
	format  string // of values
}

func goals() []goal {
	steady := func(mode fleet.Mode, from, to float64) func(*result) bool {
		return func(r *result) bool { return r.isOverload() && r.Mode == mode && r.Limit >= from && r.Limit <= to }
	}
	below := func(mode fleet.Mode, delayed bool) func(*result) bool {
		return func(r *result) bool {
			return r.isSpare() && r.Mode == mode && r.Limit >= 1000 && r.Delay > 0 == delayed
		}
	}
	at := func(name string) func(*result) bool {
		return func(r *result) bool { return r.Fault != nil && r.Fault.name == name && r.OnOutage == fleet.OutageLast }
	}
	off := func(r *result) float64 { return math.Abs(r.total() - 1) }
	first := func(r *result) float64 { return r.worstSecond(0) }
	later := func(r *result) float64 { return r.worstSecond(settled) }
	refused := func(r *result) float64 { return r.refused(settled) }
	afterwards := func(r *result) float64 { return math.Abs(r.back() - 1) }
	const lease, window = fleet.ModeLease, fleet.ModeWindow
	all := math.Inf(1)
	return []goal{
		{"lease, 1000/s and more: passed, off the limit by", steady(lease, 1000, all), off, false, 0.01, "%.4f"},
		{"lease, 100/s: passed, off the limit by", steady(lease, 100, 100), off, false, 0.04, "%.4f"},
		{"window, 1000/s and more: passed, off the limit by", steady(window, 1000, all), off, false, 0.01, "%.4f"},
		{"lease, 1000/s and more: worst second", steady(lease, 1000, all), first, false, 1.08, "%.3f"},
		{"lease, 1000/s and more: worst second after the first", steady(lease, 1000, all), later, false, 1.08, "%.3f"},
		{"window, 1000/s and more: worst aligned second", steady(window, 1000, all), (*result).alignedSecond, false, 1.005, "%.3f"},
		{"lease, 80 %, 1000/s and more: refused", below(lease, false), refused, false, 0.001, "%.4f"},
		{"window, 80 %, 1000/s and more: refused", below(window, false), refused, false, 0.003, "%.4f"},
		{"lease, 80 %, answers 20 ms later: refused", below(lease, true), refused, false, 0.01, "%.4f"},
		{"window, 80 %, answers 20 ms later: refused", below(window, true), refused, false, 0.03, "%.4f"},
		{"lease: scripts per instance and second", steady(lease, 0, all), (*result).callsPerInstance, false, 12, "%.1f"},
		{"lease, 1000/s: decisions for each script", steady(lease, 1000, 1000), (*result).decisions, true, 15, "%.1f"},
		{"lease, 100,000/s: decisions for each script", steady(lease, 100_000, 100_000), (*result).decisions, true, 1000, "%.0f"},
		{"lease and window: a script of a busy server, µs", func(r *result) bool {
			return r.isOverload() && (r.Mode == lease || r.Mode == window)
		}, func(r *result) float64 { return float64(r.perBusyScript) / 1000 }, false, 16, "%.1f"},
		{"lease and window: a key, B", func(r *result) bool {
			return r.isOverload() && (r.Mode == lease || r.Mode == window)
		}, func(r *result) float64 { return float64(r.bytes) }, false, 190, "%.0f"},
		{"killed, onOutage last: too many, s", at("killed"), (*result).tooMany, false, 0.15, "%+.3f"},
		{"killed, onOutage last: worst second", at("killed"), (*result).worstAround, false, 1.2, "%.3f"},
		{"killed, onOutage last: half a second after, off the limit by", at("killed"), afterwards, false, 0.1, "%.3f"},
		{"emptied: too many, s", at("emptied"), (*result).tooMany, false, 0.1, "%+.3f"},
	}
}

// goalTable returns a table with the run of each goal that comes off worst.
func goalTable(all []result) *report.Table {
	table := &report.Table{Title: "### Goals", Head: []string{"", "goal", "measured", "in"}}
	for _, g := range goals() {
		var worst *result
		for i := range all {
			r := &all[i]
			if g.applies(r) && (worst == nil || g.value(r) > g.value(worst) != g.atLeast) {
				worst = r
			}
		}
		if worst != nil {
			table.Add(g.about, g.String(), g.cell(g.value(worst)), worst.scenario.String())
		}
	}
	return table
}

// String returns the bound as "at most 1.08".
func (g *goal) String() string {
	if g.atLeast {
		return fmt.Sprintf("at least %v", g.bound)
	}
	return fmt.Sprintf("at most %v", g.bound)
}

func (g *goal) cell(value float64) string {
	text := fmt.Sprintf(g.format, value)
	if value != g.bound && value > g.bound != g.atLeast {
		text += " (missed)"
	}
	return text
}
