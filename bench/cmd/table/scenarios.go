package main

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/perf/benchmath"

	"github.com/penstock-go/penstock/bench/internal/peer"
	"github.com/penstock-go/penstock/bench/internal/report"
)

// growth is the scenario whose tables have another form.
const growth = "Growth"

// yardstick is the scenario whose rate.Allow other measurements are compared with.
const yardstick = "OneRulePassing"

// ofValues is what the scenarios begin with in whose loop the value of a call is chosen. They
// may have a rate.Allow of their own.
const ofValues = "Hot"

// yardstickOf returns the rate.Allow that a measurement is compared with.
func (r *results) yardstickOf(k key) key {
	k.subject = peer.Yardstick
	if _, measured := r.samples[k]; !measured || !strings.HasPrefix(k.scenario, ofValues) {
		k.scenario = yardstick
	}
	return k
}

// scenarios returns a table for each scenario: a row for each library and number of
// cores; for each variant the median with its spread and its ratios to Penstock in the
// same scenario and to rate.Allow.
func (r *results) scenarios() (tables []*report.Table) {
	for _, scenario := range distinct(r.order, func(k key) string { return k.scenario }) {
		if scenario != growth && !strings.HasPrefix(scenario, adapter) {
			tables = append(tables, r.scenario(scenario))
		}
	}
	return tables
}

func (r *results) scenario(name string) *report.Table {
	keys := r.of(name)
	variants := distinct(keys, variantOf)
	table := &report.Table{Title: "### " + spaced(name), Head: []string{"", "-cpu"}}
	for _, variant := range variants {
		table.Head = append(table.Head, variant+", ns", "×penstock", "×"+peer.Yardstick)
	}
	table.Head = append(table.Head, "B", "allocs")
	for _, subject := range distinct(keys, subjectOf) {
		for _, cores := range distinct(keys, coresOf) {
			row := []string{subject, fmt.Sprint(cores)}
			for _, variant := range variants {
				row = append(row, r.compared(key{name, subject, variant, cores})...)
			}
			table.Add(append(row, r.allocated(key{name, subject, variants[0], cores})...)...)
		}
	}
	return table
}

// compared returns the cells of one measurement: its median and its ratios to Penstock
// and to the yardstick.
func (r *results) compared(k key) []string {
	time, measured := r.median(k, "sec/op")
	if !measured {
		return []string{"–", "–", "–"}
	}
	cells := []string{nanoseconds(time)}
	for _, other := range []key{
		{k.scenario, peer.Baseline, k.variant, k.cores},
		r.yardstickOf(k),
	} {
		if base, ok := r.median(other, "sec/op"); ok {
			cells = append(cells, fmt.Sprintf("%.2f", time.Center/base.Center))
		} else {
			cells = append(cells, "–")
		}
	}
	return cells
}

// allocated returns the cells for the bytes and objects that a call allocates.
func (r *results) allocated(k key) []string {
	bytes, _ := r.median(k, "B/op")
	objects, _ := r.median(k, "allocs/op")
	return []string{fmt.Sprintf("%.0f", bytes.Center), fmt.Sprintf("%.0f", objects.Center)}
}

// nanoseconds returns a median with its confidence interval, as benchstat does. An
// interval takes six rounds.
func nanoseconds(time benchmath.Summary) string {
	text := fmt.Sprintf("%.3g", time.Center*1e9)
	if ns := time.Center * 1e9; ns >= 100 {
		text = fmt.Sprintf("%.0f", ns)
	}
	return text + " ±" + time.PctRangeString()
}

// spaced returns a name with spaces between its words.
func spaced(name string) string {
	var b strings.Builder
	for i, letter := range name {
		if i > 0 && unicode.IsUpper(letter) {
			b.WriteRune(' ')
			letter = unicode.ToLower(letter)
		}
		b.WriteRune(letter)
	}
	return b.String()
}

func subjectOf(k key) string { return k.subject }
func variantOf(k key) string { return k.variant }
func coresOf(k key) int      { return k.cores }
