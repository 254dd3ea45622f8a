package overload

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// report is what a protection reached in a scenario.
type report struct {
	scenario scenario
	values   [][]float64 // of each goal, by seed
	took     time.Duration
	calls    int
	first    simulate.Result // with the first seed
}

// mean returns the mean over the seeds of what was measured for a goal.
func (r *report) mean(goal int) float64 {
	sum := 0.0
	for _, v := range r.values[goal] {
		sum += v
	}
	return sum / float64(len(r.values[goal]))
}

// missed returns how many goals were missed.
func (r *report) missed() int {
	missed := 0
	for i, g := range r.scenario.goals {
		if !g.reached(r.mean(i)) {
			missed++
		}
	}
	return missed
}

// runScenario runs a scenario with so many seeds, 0 for as many as it says.
func runScenario(ctx context.Context, s scenario, p protection, seeds int) (report, error) {
	if seeds == 0 {
		seeds = s.seeds
	}
	start := time.Now()
	r := report{scenario: s, values: make([][]float64, len(s.goals))}
	for seed := range seeds {
		o, err := simulateScenario(ctx, s, p, s.seed+uint64(seed)+1)
		if err != nil {
			return r, fmt.Errorf("%s under %s: %w", s.name, p.name, err)
		}
		r.calls += len(o.calls)
		if seed == 0 {
			r.first = o.result
		}
		for i, g := range s.goals {
			r.values[i] = append(r.values[i], g.measure(o))
		}
	}
	r.took = time.Since(start)
	return r, nil
}

func simulateScenario(ctx context.Context, s scenario, p protection, seed uint64) (*outcome, error) {
	set, err := rules.NewTable(p.kinds...).Parse(p.name+".yaml", []byte(p.document(s)))
	if err != nil {
		return nil, err
	}
	if set, err = rules.Merge(s.rules, set); err != nil {
		return nil, err
	}
	load := s.loadWith(seed)
	o := newOutcome(s, load)
	run := func() {
		o.result, err = simulate.Run(ctx, set, load, simulate.Options{Duration: s.duration, OnEvent: o.add, Kinds: p.kinds})
	}
	if p.within == nil {
		run()
		return o, err
	}
	p.within(func() {
		load.Start = time.Now()
		run()
	})
	return o, err
}

// runAll runs every scenario under every protection, as many at once as there are
// processors. The reports are by scenario, then by protection.
func runAll(ctx context.Context, list []scenario, protections []protection, seeds int) ([][]report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	reports := make([][]report, len(list))
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	var running sync.WaitGroup
	for i, s := range list {
		reports[i] = make([]report, len(protections))
		for j, p := range protections {
			places <- struct{}{}
			running.Go(func() {
				defer func() { <-places }()
				var err error
				if reports[i][j], err = runScenario(ctx, s, p, seeds); err != nil {
					cancel(err)
				}
			})
		}
	}
	running.Wait()
	return reports, context.Cause(ctx)
}
