package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/bench/internal/report"
	"github.com/penstock-go/penstock/bench/internal/service"
)

// adapter is what the scenarios of adapters begin with. Their subjects are frameworks, their
// variants guards.
const adapter = "Adapter"

// adapters returns a table for each scenario of adapters: for each framework the lowest time
// of each guard, what it adds to that of the bare framework, and what is allocated.
func (r *results) adapters() (tables []*report.Table) {
	for _, scenario := range distinct(r.order, func(k key) string { return k.scenario }) {
		if strings.HasPrefix(scenario, adapter) {
			tables = append(tables, r.adapterTable(scenario))
		}
	}
	return tables
}

func (r *results) adapterTable(scenario string) *report.Table {
	keys := r.of(scenario)
	guards := distinct(keys, variantOf)
	table := &report.Table{Title: "### " + spaced(scenario), Head: []string{"", "-cpu"}}
	for _, guard := range guards {
		table.Head = append(table.Head, guard+", ns", "B", "allocs")
		if guard != string(service.Bare) && slices.Contains(guards, string(service.Bare)) {
			table.Head = append(table.Head, "more than bare, ns")
		}
	}
	for _, framework := range distinct(keys, subjectOf) {
		for _, cores := range distinct(keys, coresOf) {
			row := []string{framework, fmt.Sprint(cores)}
			for _, guard := range guards {
				row = append(row, r.guarded(key{scenario, framework, guard, cores})...)
			}
			table.Add(row...)
		}
	}
	return table
}

// guarded returns the cells of a guard: how long a call took, what was allocated, and how much
// longer than without the guard it took, if that was measured.
func (r *results) guarded(k key) []string {
	cells := []string{
		fmt.Sprintf("%.0f", r.lowest(k, "sec/op")*1e9),
		fmt.Sprintf("%.0f", r.lowest(k, "B/op")),
		fmt.Sprintf("%.0f", r.lowest(k, "allocs/op")),
	}
	bare := k
	bare.variant = string(service.Bare)
	if _, measured := r.samples[bare]; measured && bare != k {
		cells = append(cells, fmt.Sprintf("%.0f", (r.lowest(k, "sec/op")-r.lowest(bare, "sec/op"))*1e9))
	}
	return cells
}

// lowest returns the lowest figure of a measurement, which other work of the machine has
// disturbed least; 0 if there is none.
func (r *results) lowest(k key, unit string) float64 {
	if len(r.samples[k][unit]) == 0 {
		return 0
	}
	return slices.Min(r.samples[k][unit])
}
