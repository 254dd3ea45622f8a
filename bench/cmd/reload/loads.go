package main

import (
	"runtime"
	"time"

	"github.com/aclements/go-moremath/stats"

	"github.com/penstock-go/penstock/bench/internal/peer"
	"github.com/penstock-go/penstock/bench/internal/report"
)

// addLoads adds how long a framework takes to load rules.
func addLoads(table *report.Table, framework peer.Framework, rounds int) error {
	row := []string{framework.Name}
	for _, count := range []int{1000, 10_000} {
		for _, changed := range []int{count, 1} {
			took, err := load(framework.New(peer.Settings{}), count, changed, rounds)
			if err != nil {
				return err
			}
			row = append(row, took.Round(time.Microsecond).String())
			if err := peer.Reset(); err != nil {
				return err
			}
		}
	}
	table.Add(row...)
	return nil
}

// unmeasured is how many loads come before those that are measured: the first ones pay for the memory
// that the process takes from the system, which the later ones use again.
const unmeasured = 20

// load returns the median time to load rules of which a number has changed since the
// last load. Every resource has been called.
func load(guards peer.Guards, count, changed, rounds int) (time.Duration, error) {
	resources := peer.Names("guarded", count)
	sets := twoSets(guards, resources, changed)
	if err := sets[1](); err != nil {
		return 0, err
	}
	for _, resource := range resources {
		guards.Call(resource)
	}
	var took stats.Sample
	for round := range unmeasured + rounds {
		runtime.GC() // so that a load does not pay for the garbage of the one before
		began := time.Now()
		if err := sets[round%2](); err != nil {
			return 0, err
		}
		if round >= unmeasured {
			took.Xs = append(took.Xs, float64(time.Since(began)))
		}
	}
	return time.Duration(took.Quantile(0.5)), nil
}
