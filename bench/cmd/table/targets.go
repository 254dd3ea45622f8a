package main

import (
	"fmt"

	"github.com/penstock-go/penstock/bench/internal/peer"
	"github.com/penstock-go/penstock/bench/internal/report"
)

// target is a bound of one measurement beside another, on the same number of cores.
type target struct {
	about           string
	measured, other key
	unit            unit
	atLeast         bool // the bound is the least, otherwise the most
	bound           float64
}

// unit says how two measurements are compared.
type unit string

const (
	timesRate     unit = "× " + peer.Yardstick
	timesPenstock unit = "× " + peer.Baseline
	nsMore        unit = "ns more" // than without the rule
)

func targets() []target {
	serial := func(scenario, subject string) key {
		return key{scenario: scenario, subject: subject, variant: "serial"}
	}
	phase := func(rule, variant string) key {
		return key{scenario: "EntryAndExit", subject: rule, variant: variant}
	}
	const composition = "LimitIsolationAndBreaker"
	reference, penstock := serial(yardstick, peer.Yardstick), serial(composition, peer.Baseline)
	amongThousands, amongMillions := serial("HotTenThousandValues", peer.Yardstick), serial("HotMillionValues", peer.Yardstick)
	return []target{
		{"flow: a call passes", serial(yardstick, peer.Baseline), reference, timesRate, false, 1.25},
		{"flow: a call passes, coarse clock", serial(yardstick, peer.Fastest), reference, timesRate, false, 0.6},
		{"flow: a call is refused", serial("OneRuleBlocking", peer.Baseline), reference, timesRate, false, 0.75},
		{"isolation: Entry", phase("isolation", "entry"), phase("no-rule", "entry"), nsMore, false, 25},
		{"isolation: Exit", phase("isolation", "exit"), phase("no-rule", "exit"), nsMore, false, 25},
		{"breaker, closed: Entry", phase("breaker", "entry"), phase("no-rule", "entry"), nsMore, false, 20},
		{"breaker, closed: Exit", phase("breaker", "exit"), phase("no-rule", "exit"), nsMore, false, 30},
		{"breaker, open: a call is refused", serial("BreakerOpen", peer.Baseline), reference, timesRate, false, 0.6},
		{"breaker, open: a call is refused, coarse clock", serial("BreakerOpen", peer.Fastest), reference, timesRate, false, 0.6},
		{"adaptive: Entry", phase("adaptive", "entry"), phase("no-rule", "entry"), nsMore, false, 30},
		{"adaptive: Exit", phase("adaptive", "exit"), phase("no-rule", "exit"), nsMore, false, 30},
		{"adaptive, overloaded: a call is refused", serial("AdaptiveRefusing", peer.Baseline), reference, timesRate, false, 0.75},
		{"adaptive, overloaded: a call is refused, coarse clock", serial("AdaptiveRefusing", peer.Fastest), reference, timesRate, false, 0.75},
		{"hotParam, 10,000 values: a call passes", serial("HotTenThousandValues", peer.Baseline), amongThousands, timesRate, false, 1.5},
		{"hotParam, 10,000 values: a call passes, Engine.Resource", serial("HotTenThousandValues", peer.Resolved), amongThousands, timesRate, false, 1.5},
		{"hotParam, 10,000 values: a call passes, coarse clock", serial("HotTenThousandValues", peer.Fastest), amongThousands, timesRate, false, 1.5},
		{"hotParam, a million values: a call passes", serial("HotMillionValues", peer.Baseline), amongMillions, timesRate, false, 2.5},
		{"hotParam, a million values: a call passes, Engine.Resource", serial("HotMillionValues", peer.Resolved), amongMillions, timesRate, false, 2.5},
		{"hotParam, a million values: a call passes, coarse clock", serial("HotMillionValues", peer.Fastest), amongMillions, timesRate, false, 2.5},
		{"hotParam: a call is refused", serial("HotOneValueBlocking", peer.Baseline), reference, timesRate, false, 1},
		{"hotParam: a call is refused, coarse clock", serial("HotOneValueBlocking", peer.Fastest), reference, timesRate, false, 1},
		{"all three: sentinel", serial(composition, "sentinel"), penstock, timesPenstock, true, 8},
		{"all three: failsafe-executor", serial(composition, "failsafe-executor"), penstock, timesPenstock, true, 4},
	}
}

// targets returns a table of all targets, with what was measured for each number of
// cores; none when no target was measured.
func (r *results) targets() []*report.Table {
	cores := distinct(r.order, coresOf)
	table := &report.Table{Title: "### Targets", Head: []string{"", "target"}}
	for _, n := range cores {
		table.Head = append(table.Head, fmt.Sprintf("-cpu %d", n))
	}
	measured := false
	for _, t := range targets() {
		row := []string{t.about, t.String()}
		for _, n := range cores {
			value, ok := r.measure(t, n)
			measured = measured || ok
			row = append(row, t.cell(value, ok))
		}
		table.Add(row...)
	}
	if !measured {
		return nil
	}
	return []*report.Table{table}
}

// measure returns what was measured of a target; false when one of the two
// measurements is missing.
func (r *results) measure(t target, cores int) (float64, bool) {
	t.measured.cores, t.other.cores = cores, cores
	a, ok := r.median(t.measured, "sec/op")
	b, okay := r.median(t.other, "sec/op")
	switch {
	case !ok || !okay:
		return 0, false
	case t.unit == nsMore:
		return (a.Center - b.Center) * 1e9, true
	default:
		return a.Center / b.Center, true
	}
}

// String returns the target as "at most 25 ns more".
func (t target) String() string {
	bound := "at most"
	if t.atLeast {
		bound = "at least"
	}
	return fmt.Sprintf("%s %v %s", bound, t.bound, t.unit)
}

func (t target) cell(value float64, measured bool) string {
	if !measured {
		return "–"
	}
	text := fmt.Sprintf("%.2f", value)
	if t.unit == nsMore {
		text = fmt.Sprintf("%.1f", value)
	}
	if value != t.bound && value > t.bound != t.atLeast {
		text += " (missed)"
	}
	return text
}
