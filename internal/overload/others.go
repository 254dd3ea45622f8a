package overload

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/simulate"
)

// others are scenarios beside the table of reference: services of other sizes and shapes,
// and faults.
func others() []scenario {
	list := sizes()
	list = append(list, shapes()...)
	list = append(list, faults()...)
	return append(list, mixed()...)
}

// sizes are services with few and many workers, and quick and slow ones.
func sizes() []scenario {
	var list []scenario
	for _, size := range []struct {
		workers        int
		slowdown       float64
		below          float64 // multiple of the capacity
		refused        float64
		goodput        float64
		duration, from time.Duration
		seeds          int
	}{
		{1, 0.02, 0.6, 0.01, 0.85, time.Minute, 20 * second, 4},
		{2, 0.02, 0.7, 0.01, 0.87, time.Minute, 20 * second, 4},
		{4, 0.02, 0.8, 0.01, 0.89, 30 * second, 10 * second, 4},
		{16, 0.02, 0.9, 0.005, 0.92, 30 * second, 10 * second, 2},
		{32, 0.02, 0.9, 0.001, 0.90, 30 * second, 10 * second, 1},
		// 0.02 for each of some fifty calls that wait would make them twice as slow.
		{128, 0.0025, 0.9, 0.001, 0.93, 15 * second, 5 * second, 1},
		{256, 0.00125, 0.9, 0.001, 0.93, 12 * second, 5 * second, 1},
	} {
		s := reference().with(func(s *service) { s.workers, s.slowdown = size.workers, size.slowdown })
		list = append(list, scenario{
			name: fmt.Sprintf("%v ×, %d workers", size.below, size.workers), duration: size.duration, seeds: size.seeds, service: s,
			load:  steady(size.below),
			goals: []goal{atMost(size.refused, "refused once warm", refusedFrom(size.from))},
		}, scenario{
			name: fmt.Sprintf("3 ×, %d workers, warm", size.workers), duration: size.duration, seeds: size.seeds, service: s,
			load:  demand(step{0, 0.5}, step{size.from, 3}),
			goals: []goal{atLeast(size.goodput, "goodput", goodput(size.from, size.duration))},
		})
	}
	for _, mean := range []time.Duration{time.Millisecond, 100 * time.Millisecond, second} {
		s := reference().with(func(s *service) { s.mean, s.patience = mean, 20*mean })
		duration := max(20*second, 600*mean)
		list = append(list, scenario{
			name: fmt.Sprintf("0.8 ×, service of %v", mean), duration: duration, seeds: 1, service: s, load: steady(0.8),
			goals: []goal{atMost(0.04, "refused", refused)}, // few slow calls may wait: each for at most 100 ms
		}, scenario{
			name: fmt.Sprintf("3 ×, service of %v", mean), duration: duration, seeds: 1, service: s, load: steady(3),
			goals: []goal{atLeast(0.85, "goodput", goodput(duration/3, duration))},
		})
	}
	return list
}

// refusedFrom measures the share of calls that were refused from a time on.
func refusedFrom(t time.Duration) func(*outcome) float64 {
	return func(o *outcome) float64 { return o.share(o.from(t), isRefused) }
}

// shapes are services whose times vary in other ways.
func shapes() []scenario {
	bimodal := reference().with(func(s *service) { s.shape, s.slowShare, s.slowFactor = simulate.Bimodal, 0.1, 20 })
	steep := reference().with(func(s *service) { s.slowdown = 0.1 })
	quicker := reference().with(func(s *service) {
		s.changes = []simulate.ServiceChange{{At: 20 * second, Service: simulate.Service{Mean: s.mean / 2}}}
	})
	return []scenario{
		{name: "0.8 ×, bimodal", duration: time.Minute, seeds: 2, service: bimodal, load: steady(0.8), goals: []goal{
			atMost(0.01, "refused or late", lost(0)),
		}},
		saturated("3 ×, bimodal", bimodal, 3, 0.90),
		{name: "0.9 ×, steep slowdown", duration: time.Minute, seeds: 2, service: steep, load: steady(0.9), goals: []goal{
			atLeast(0.8, "goodput / capacity", goodput(0, time.Minute)),
		}},
		saturated("3 ×, steep slowdown", steep, 3, 0.85),
		{
			name: "service twice as quick at 3 ×", duration: 50 * second, seeds: 2, service: quicker, load: steady(3),
			goals: []goal{atLeast(0.90, "goodput / new capacity, after 10 s", func(o *outcome) float64 {
				return goodput(30*second, 50*second)(o) / 2
			})},
		},
	}
}

// faults are services and clients that go wrong for a while.
func faults() []scenario {
	const at, until = 20 * second, 30 * second
	stalled := reference().with(func(s *service) { s.stalls = []simulate.Stall{{At: at, For: 2 * second}} })
	hung := reference().with(func(s *service) {
		s.changes = []simulate.ServiceChange{
			{At: at, Service: simulate.Service{Mean: second}}, {At: until, Service: simulate.Service{Mean: s.mean}},
		}
	})
	failing := func(s service) simulate.Load {
		all := 1.0
		load := steady(0.7)(s)
		load.Streams[0].Phases = []simulate.Phase{{Until: at}, {Until: until, Fails: &all}, {}}
		return load
	}
	retrying := func(s service) simulate.Load {
		load := demand(step{0, 0.8}, step{at, 2}, step{until, 0.8})(s)
		for i := range load.Streams {
			load.Streams[i].Retries, load.Streams[i].RetryDelay = 2, 100*time.Millisecond
		}
		return load
	}
	back := func(share float64, from time.Duration, demand float64) goal {
		return atLeast(share, "goodput / demand, 5 s after", func(o *outcome) float64 { return goodput(from, from+5*second)(o) / demand })
	}
	return []scenario{
		{
			name: "stall of 2 s at 0.7 ×", duration: 40 * second, seeds: 3, service: stalled, load: steady(0.7),
			goals: []goal{back(0.90, at+2*second, 0.7)},
		},
		{
			name: "stall of 2 s at 3 ×", duration: 40 * second, seeds: 3, service: stalled, load: steady(3),
			goals: []goal{back(0.80, at+2*second, 1), atLeast(0.90, "goodput, last 5 s", goodput(35*second, 40*second))},
		},
		{
			name: "service × 100 for 10 s at 0.7 ×", duration: 40 * second, seeds: 3, service: hung, load: steady(0.7),
			goals: []goal{
				back(0.50, until, 0.7),
				atLeast(0.95, "useful, last 5 s", useful(35*second, 39*second)),
			},
		},
		{
			name: "all calls fail for 10 s at 0.7 ×", duration: 40 * second, seeds: 2, service: reference(), load: failing,
			goals: []goal{back(0.95, until, 0.7)},
		},
		{
			name: "retries at 2 × for 10 s", duration: 45 * second, seeds: 3, service: reference(), load: retrying,
			goals: []goal{
				atLeast(0.90, "goodput of the 10 s", goodput(at, until)),
				atLeast(0.98, "useful from 2 s after", useful(until+2*second, 44*second)),
			},
		},
	}
}

// mixed are loads that go up and down, and calls of many priorities.
func mixed() []scenario {
	const length = 10 * second
	multiples := []float64{0.5, 3, 0.8, 10, 0.3, 1.5, 0.7, 5, 0.5, 2}
	var steps []step
	for i, multiple := range multiples {
		steps = append(steps, step{time.Duration(i) * length, multiple})
	}
	// of returns the mean of a measure over the steps above or below the capacity, from
	// two seconds after their beginnings on.
	of := func(above bool, measure func(from, to time.Duration) func(*outcome) float64) func(*outcome) float64 {
		return func(o *outcome) float64 {
			sum, count := 0.0, 0
			for _, s := range steps {
				if (s.demand > 1) == above {
					sum += measure(s.from+2*second, s.from+length)(o)
					count++
				}
			}
			return sum / float64(count)
		}
	}
	critical := func(s service) simulate.Load {
		load := demand(step{0, 0.5}, step{length, 9.5})(s)
		few := s.stream(0.5 * s.capacity())
		few.Priority = rule.PriorityCritical
		load.Streams = append(load.Streams, few)
		return load
	}
	return []scenario{
		{
			name: "steps up and down", duration: 100 * second, seeds: 2, service: reference(), load: demand(steps...),
			goals: []goal{
				atLeast(0.93, "goodput in overload, after 2 s", of(true, goodput)),
				atLeast(0.999, "useful below capacity, after 2 s", of(false, useful)),
			},
		},
		{
			name: "five priorities at 2 ×", duration: 30 * second, seeds: 2, service: reference(), load: fivePriorities,
			goals: []goal{
				atLeast(0.99, "critical: served", served(rule.PriorityCritical, 5*second, 30*second)),
				atLeast(0.97, "high: served", served(rule.PriorityHigh, 5*second, 30*second)),
				atMost(0.10, "low: served", served(rule.PriorityLow, 5*second, 30*second)),
				atMost(0.05, "sheddable: served", served(rule.PrioritySheddable, 5*second, 30*second)),
			},
		},
		{
			name: "few critical calls at 10 ×", duration: 30 * second, seeds: 2, service: reference(), load: critical,
			goals: []goal{
				atLeast(0.99, "critical: served", served(rule.PriorityCritical, length, 30*second)),
				atLeast(0.90, "goodput", goodput(length, 30*second)),
			},
		},
	}
}

// fivePriorities returns a load of twice the capacity, in equal parts.
func fivePriorities(s service) simulate.Load {
	var load simulate.Load
	for _, priority := range rule.Priorities() {
		stream := s.stream(0.4 * s.capacity())
		stream.Priority = priority
		load.Streams = append(load.Streams, stream)
	}
	return load
}
