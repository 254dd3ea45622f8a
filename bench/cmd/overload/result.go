package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/bench/internal/report"
)

// result is what was measured of a service under a load, and what a simulation says.
type result struct {
	service         service
	load            float64 // a multiple of the capacity
	capacity        float64 // requests a second
	real, simulated outcome
}

// ratio compares the goodput with that of the simulation.
func (r *result) ratio() float64 { return r.real.Goodput / r.simulated.Goodput }

func (r *result) String() string {
	return fmt.Sprintf("%-6s %4g ×: capacity %.0f/s; goodput %.3f, simulated %.3f, ratio %.3f; p99 %.0f ms, simulated %.0f; refused %.3f, simulated %.3f; generator: CPU %.2f, lag %.1f ms; server: CPU %.2f",
		r.service.name, r.load, r.capacity, r.real.Goodput/r.capacity, r.simulated.Goodput/r.capacity, r.ratio(),
		1000*r.real.P99, 1000*r.simulated.P99, r.real.Refused, r.simulated.Refused,
		r.real.GeneratorCPU, 1000*r.real.Lag, r.real.ServerCPU)
}

// tableOf returns a table with a row for each service and load: the round with the median
// ratio.
func tableOf(all [][]result) *report.Table {
	table := &report.Table{Head: []string{
		"service", "load", "capacity/s", "goodput / capacity", "simulated", "ratio", "p99, ms", "simulated",
		"refused", "simulated", "generator's CPU", "its lag, ms", "server's CPU",
	}}
	for _, rounds := range all {
		sorted := slices.SortedFunc(slices.Values(rounds), func(a, b result) int { return cmp.Compare(a.ratio(), b.ratio()) })
		r := sorted[len(sorted)/2]
		share := func(v float64) string { return fmt.Sprintf("%.3f", v) }
		ms := func(v float64) string { return fmt.Sprintf("%.1f", 1000*v) }
		table.Add(r.service.name, fmt.Sprintf("%g ×", r.load), fmt.Sprintf("%.0f", r.capacity),
			share(r.real.Goodput/r.capacity), share(r.simulated.Goodput/r.capacity), share(r.ratio()),
			ms(r.real.P99), ms(r.simulated.P99), share(r.real.Refused), share(r.simulated.Refused),
			share(r.real.GeneratorCPU), ms(r.real.Lag), share(r.real.ServerCPU))
	}
	return table
}
