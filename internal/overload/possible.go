package overload

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/internal/match"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/simulate"
)

// capacities say what the servers of a load need for calls, and what they can do, over
// time.
type capacities struct {
	load    simulate.Load
	classes []string
	changes []time.Duration // times at which something changes, in order, from 0 on
}

func newCapacities(load simulate.Load, classes []string) *capacities {
	c := &capacities{load: load, classes: classes, changes: []time.Duration{0}}
	for _, s := range load.Streams {
		c.changes = append(c.changes, s.From, s.Until)
	}
	for _, s := range load.Servers {
		for _, change := range s.Changes {
			c.changes = append(c.changes, change.At)
		}
		for _, r := range s.Services {
			for _, change := range r.Changes {
				c.changes = append(c.changes, change.At)
			}
		}
	}
	slices.Sort(c.changes)
	c.changes = slices.Compact(c.changes)
	return c
}

// segments divides a span at the changes.
func (c *capacities) segments(in span) (list []span) {
	for _, t := range c.changes {
		if t > in.from && t < in.to {
			list = append(list, span{in.from, t})
			in.from = t
		}
	}
	return append(list, in)
}

// at returns, for each class, the share of the capacity of each server that one call per
// second takes at a time. Servers without a bound have none.
func (c *capacities) at(t time.Duration) [][]float64 {
	needs := make([][]float64, len(c.classes))
	for i, class := range c.classes {
		needs[i] = make([]float64, len(c.load.Servers))
		for j, s := range c.load.Servers {
			if !s.Unlimited && matches(s.Resources, class) {
				needs[i][j] = workOf(s, class, t) / workersOf(s)
			}
		}
	}
	return needs
}

// workersOf returns how many workers of a server can be busy all the time.
func workersOf(s simulate.Server) float64 {
	if s.Quota != (simulate.Quota{}) {
		return float64(s.Quota.Time) / float64(s.Quota.Period)
	}
	return float64(s.Workers)
}

// workOf returns how long a server works for a call of a class, on average, in seconds.
func workOf(s simulate.Server, class string, t time.Duration) float64 {
	service, changes, share := s.Service, s.Changes, cmp.Or(s.Share, 1)
	for _, r := range s.Services {
		if matches(r.Resources, class) {
			service, changes, share = r.Service, r.Changes, cmp.Or(r.Share, share)
			break
		}
	}
	mean := service.Mean
	for _, c := range changes {
		if c.At <= t && c.Service.Mean > 0 {
			mean = c.Service.Mean
		}
	}
	return share * mean.Seconds()
}

// unloaded returns how long a call of a class takes at the start if it waits for nothing,
// on average, in seconds.
func (c *capacities) unloaded(class string) float64 {
	sum := 0.0
	for _, s := range c.load.Servers {
		if matches(s.Resources, class) {
			sum += workOf(s, class, 0)
		}
	}
	return sum
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(text string) bool {
		p, err := match.Compile(text)
		return text == name || err == nil && p.Matches(name)
	})
}

// flow is calls of one class and priority.
type flow struct {
	class    int
	priority string
	demand   float64   // calls per second
	needs    []float64 // shares of the capacity of each server for one call per second
	rate     float64   // possible, at best
}

// need returns the share of the capacity that a call per second takes where it takes the
// most.
func need(needs []float64) float64 { return slices.Max(append([]float64{0}, needs...)) }

// divide finds what is possible at best: highest priority first, and within a priority
// max–min fair by the share of the capacity that each class takes where it takes the most.
func divide(flows []flow, servers int) {
	left := slices.Repeat([]float64{1}, servers)
	for _, p := range rule.Priorities() {
		var level []*flow
		for i := range flows {
			if flows[i].priority == p.String() {
				level = append(level, &flows[i])
			}
		}
		fill(level, left)
	}
}

// fill raises what all flows take, evenly, until each has what it wants or a server that
// it needs has nothing left.
func fill(flows []*flow, left []float64) {
	for len(flows) > 0 {
		step := math.Inf(1) // of the share that each takes
		sum := make([]float64, len(left))
		for _, f := range flows {
			most := need(f.needs)
			if most == 0 {
				continue
			}
			step = min(step, (f.demand-f.rate)*most)
			for j, n := range f.needs {
				sum[j] += n / most
			}
		}
		for j := range left {
			if sum[j] > 0 {
				step = min(step, left[j]/sum[j])
			}
		}
		for j := range left {
			left[j] -= step * sum[j]
		}
		const little = 1e-9
		flows = slices.DeleteFunc(flows, func(f *flow) bool {
			most := need(f.needs)
			if most == 0 {
				f.rate = f.demand
				return true
			}
			f.rate += step / most
			full := slices.ContainsFunc(left, func(l float64) bool { return l < little })
			return (f.demand-f.rate)*most < little || full && f.needsOneOf(left, little)
		})
	}
}

// needsOneOf says whether the flow needs a server that has nothing left.
func (f *flow) needsOneOf(left []float64, little float64) bool {
	for j, n := range f.needs {
		if n > 0 && left[j] < little {
			return true
		}
	}
	return false
}
