package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// loadSteps are random steps of the load on a service under an adaptive rule: ten minutes
// of them, on the virtual clock of simulations, so that only what the rule does counts and
// not how busy this machine is.
const (
	loadStepsLength = 10 * time.Minute
	steadyAfter     = 8 * time.Second // from then on the limit has to be steady in an overload
	steadyLeast     = 5 * time.Second
)

// The service: it serves 800 calls a second.
const (
	stepWorkers  = 8
	stepService  = 10 * time.Millisecond
	stepCapacity = stepWorkers / 0.010
	stepPatience = 200 * time.Millisecond
)

// loadStep is a time of constant load.
type loadStep struct {
	from, until time.Duration
	multiple    float64 // of the capacity
}

func (s loadStep) overloaded() bool { return s.multiple > 1 }

// randomSteps returns steps of 15 to 25 seconds: loads below the capacity and overloads in
// turn.
func randomSteps(random *rand.Rand, length time.Duration) (steps []loadStep) {
	for t := time.Duration(0); t < length; {
		s := loadStep{from: t, until: min(t+15*time.Second+time.Duration(random.Int64N(int64(10*time.Second))), length)}
		if len(steps)%2 == 0 {
			s.multiple = 0.2 + 0.7*random.Float64()
		} else {
			s.multiple = 1.5 * math.Pow(10/1.5, random.Float64())
		}
		steps = append(steps, s)
		t = s.until
	}
	return steps
}

// What the limit keeps to in the steady part of an overload.
const (
	mostOff       = 0.25 // of the median: else a value is off
	mostOffShare  = 0.15 // of all values: those in probes, which try other limits on purpose
	mostRatchet   = 0.10 // by which the medians of two overloads differ
	leastGoodput  = 0.85 // of the capacity, in each overload
	leastInARow   = 4    // values that are off one after the other are an oscillation: probes seldom take three
	leastAbsolute = 1.0  // call: limits are whole numbers
)

// stepReport is what the limit did in the steady part of an overload.
type stepReport struct {
	loadStep
	limit     float64 // the median of its values, one a second
	low, high float64 // the lowest and the highest of them
	off       int     // how many are more than a quarter off the median
	inARow    int     // of these, the most one after the other
	values    int
	goodput   float64 // as a share of the capacity
}

// runLoadSteps simulates random steps. It reports the overloads that were long enough to
// become steady.
func runLoadSteps(ctx context.Context, random *rand.Rand, length time.Duration) ([]stepReport, error) {
	steps := randomSteps(random, length)
	load := simulate.Load{Seed: random.Uint64(), Servers: []simulate.Server{{
		Resources: []string{"work"}, Workers: stepWorkers, Slowdown: 0.02,
		Service: simulate.Service{Mean: stepService, Shape: simulate.Exponential},
	}}}
	for _, s := range steps {
		load.Streams = append(load.Streams, simulate.Stream{
			Resource: "work", Inbound: true, Timeout: stepPatience, Shape: simulate.Poisson,
			Rate: s.multiple * stepCapacity, From: s.from, Until: s.until,
		})
	}
	set := rules.Set{Adaptive: []adaptive.Rule{{Name: "shed"}}}
	result, err := simulate.Run(ctx, set, load, simulate.Options{Duration: length})
	if err != nil {
		return nil, err
	}
	var reports []stepReport
	for _, s := range steps {
		if s.overloaded() && s.until-s.from >= steadyAfter+steadyLeast {
			reports = append(reports, reportOf(s, result))
		}
	}
	if len(reports) == 0 {
		return nil, errors.New("no overload was long enough")
	}
	return reports, nil
}

// reportOf reports a step.
func reportOf(s loadStep, result simulate.Result) stepReport {
	r := stepReport{loadStep: s, low: math.Inf(1)}
	from, until := (s.from + steadyAfter).Seconds(), s.until.Seconds()
	var limits []float64
	for _, row := range result.Limits {
		if row.T >= from && row.T < until && row.Limit != nil {
			limits = append(limits, *row.Limit)
		}
	}
	r.values = len(limits)
	if r.values == 0 {
		return r
	}
	sorted := slices.Sorted(slices.Values(limits))
	r.limit, r.low, r.high = sorted[len(sorted)/2], sorted[0], sorted[len(sorted)-1]
	row := 0
	for _, limit := range limits {
		row++
		if math.Abs(limit-r.limit) <= max(mostOff*r.limit, leastAbsolute) {
			row = 0
			continue
		}
		r.off++
		r.inARow = max(r.inARow, row)
	}
	good, seconds := 0, 0
	for _, row := range result.Seconds {
		if t := float64(row.Second); t >= from && t+1 <= until {
			good += row.Good
			seconds++
		}
	}
	r.goodput = float64(good) / float64(max(seconds, 1)) / stepCapacity
	return r
}

func (r stepReport) String() string {
	return fmt.Sprintf("at %.0f s, %.1f ×: limit %.0f, from %.0f to %.0f, %d of %d values off, goodput %.2f",
		r.from.Seconds(), r.multiple, r.limit, r.low, r.high, r.off, r.values, r.goodput)
}

// checkLoadSteps returns what is wrong: a limit that did not come back, one that goes up and
// down, or a service that does little.
func checkLoadSteps(reports []stepReport) (wrong []string) {
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	var limits []float64
	off, values := 0, 0
	for _, r := range reports {
		limits = append(limits, r.limit)
		off, values = off+r.off, values+r.values
	}
	slices.Sort(limits)
	usual := limits[len(limits)/2]
	for _, r := range reports {
		if math.Abs(r.limit-usual) > max(mostRatchet*usual, leastAbsolute) {
			add("%v: the limit did not come back to %.0f", r, usual)
		}
		if r.inARow >= leastInARow {
			add("%v: the limit goes up and down", r)
		}
		if r.goodput < leastGoodput {
			add("%v: the goodput is too low", r)
		}
	}
	if float64(off) > mostOffShare*float64(values) {
		add("%d of %d values of the limit are off", off, values)
	}
	return wrong
}

// testLoadSteps simulates ten minutes of random load steps, again and again until ctx ends.
func (s *soak) testLoadSteps(ctx context.Context, random *rand.Rand) {
	for {
		reports, err := runLoadSteps(ctx, random, s.loadSteps)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.findings.add("random load steps: %v", err)
			return
		}
		for _, finding := range checkLoadSteps(reports) {
			s.findings.add("random load steps: %s", finding)
		}
		s.overloads.Add(uint64(len(reports)))
		select {
		case <-time.After(30 * time.Second): // the rest of the soak test needs the processor too
		case <-ctx.Done():
			return
		}
	}
}
