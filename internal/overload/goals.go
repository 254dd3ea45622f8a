package overload

import (
	"time"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/simulate"
)

// scenarios are all of them.
func scenarios() []scenario { return append(references(), others()...) }

// references are the scenarios that protections are compared by.
func references() []scenario {
	list := belowCapacity()
	list = append(list, aboveCapacity()...)
	list = append(list, changing()...)
	return append(list, prioritized()...)
}

const second = time.Second

// belowCapacity are loads that the service can bear: whatever is refused is refused
// needlessly.
func belowCapacity() []scenario {
	many := reference().with(func(s *service) { s.workers = 64 })
	return []scenario{
		{name: "0.7 ×", duration: 2 * time.Minute, seeds: 3, service: reference(), load: steady(0.7), goals: []goal{
			atMost(0.0002, "refused", refused),
		}},
		{name: "0.8 ×", duration: 2 * time.Minute, seeds: 3, service: reference(), load: steady(0.8), goals: []goal{
			atMost(0.001, "refused", refused),
		}},
		{name: "0.9 ×", duration: 2 * time.Minute, seeds: 3, service: reference(), load: steady(0.9), goals: []goal{
			atMost(0.01, "refused", refused),
		}},
		{name: "0.9 ×, 64 workers", duration: 30 * second, seeds: 2, service: many, load: steady(0.9), goals: []goal{
			atMost(0.0005, "refused", refused),
		}},
		{name: "0.8 ×, heavy tail", duration: 2 * time.Minute, seeds: 3, service: reference().heavyTail(), load: steady(0.8), goals: []goal{
			atMost(0.03, "refused or late", lost(0)),
		}},
		{name: "1 call per second", duration: 5 * time.Minute, seeds: 3, service: reference(), goals: []goal{
			atMost(0, "refused", refused),
		}, load: func(s service) simulate.Load {
			return simulate.Load{Streams: []simulate.Stream{s.stream(1)}}
		}},
		{name: "bursts of 80", duration: time.Minute, seeds: 3, service: reference(), load: bursts(0.35, 80, 2*second, time.Minute), goals: []goal{
			atMost(0.002, "refused or late", lost(0)),
		}},
	}
}

// bursts returns a steady load with many calls at once every now and then.
func bursts(multiple float64, size int, every, until time.Duration) func(service) simulate.Load {
	return func(s service) simulate.Load {
		load := steady(multiple)(s)
		burst := simulate.Stream{Resource: "work", Inbound: true, Timeout: s.patience}
		for t := every; t < until; t += every {
			for range size {
				burst.Times = append(burst.Times, t)
			}
		}
		load.Streams = append(load.Streams, burst)
		return load
	}
}

// aboveCapacity are loads that the service cannot bear.
func aboveCapacity() []scenario {
	list := []scenario{
		saturated("1.5 ×", reference(), 1.5, 0.93),
		saturated("3 ×", reference(), 3, 0.93),
		saturated("10 ×", reference(), 10, 0.93),
		saturated("3 ×, no slowdown", reference().with(func(s *service) { s.slowdown = 0 }), 3, 0.97),
		saturated("3 ×, constant service", reference().with(func(s *service) { s.shape = simulate.Constant }), 3, 0.95),
		saturated("3 ×, heavy tail", reference().heavyTail(), 3, 0.88),
		saturated("3 ×, 64 workers", reference().with(func(s *service) { s.workers = 64 }), 3, 0.93),
		{name: "cold start at 3 ×", duration: 5 * second, seeds: 5, service: reference(), load: steady(3), goals: []goal{
			atLeast(0.85, "goodput, 2–5 s", goodput(2*second, 5*second)),
		}},
		{name: "ten minutes at 1.2 ×", duration: 10 * time.Minute, seeds: 2, service: reference(), load: steady(1.2), goals: []goal{
			atLeast(0.92, "goodput, last two minutes", goodput(8*time.Minute, 10*time.Minute)),
			atMost(0.070, "p99, last two minutes", p99(8*time.Minute, 10*time.Minute)),
		}},
		{
			name: "2 ×, CPU shows 20 %", duration: 30 * second, seeds: 3, service: reference(), load: idleCPU(steady(2)),
			goals: []goal{atLeast(0.93, "goodput", goodput(10*second, 30*second))},
		},
	}
	list[1].goals = append(list[1].goals, atMost(0.064, "p99", p99(10*second, 30*second)))
	list[6].duration, list[6].seeds = 20*second, 1
	list[6].goals[0].measure = goodput(10*second, 20*second)
	return list
}

// saturated is a scenario of a steady overload.
func saturated(name string, s service, multiple, least float64) scenario {
	return scenario{
		name: name, duration: 30 * second, seeds: 3, service: s, load: steady(multiple),
		goals: []goal{atLeast(least, "goodput", goodput(10*second, 30*second))},
	}
}

// idleCPU returns the load where workers wait for something else than a processor.
func idleCPU(load func(service) simulate.Load) func(service) simulate.Load {
	return func(s service) simulate.Load {
		l := load(s)
		cpu := 0.2
		l.Signals = []simulate.Signal{{CPU: &cpu}}
		return l
	}
}

// changing are loads and services that change.
func changing() []scenario {
	const at = 20 * second
	slower := reference().with(func(s *service) {
		s.changes = []simulate.ServiceChange{
			{At: at, Service: simulate.Service{Mean: 4 * s.mean}},
			{At: at + 10*second, Service: simulate.Service{Mean: s.mean}},
		}
	})
	drifting := reference().with(func(s *service) { s.changes = drift(s.mean, 1.5, at, 2*time.Minute) })
	return []scenario{
		{
			name: "step 0.5 → 3 ×", duration: 40 * second, seeds: 5, service: reference(), load: demand(step{0, 0.5}, step{at, 3}),
			goals: []goal{
				atLeast(0.70, "worst second of goodput", worstSecond(at, 40*second)),
				atMost(1, "until p90 < 100 ms", settled(at, 100*time.Millisecond)),
			},
		},
		{
			name: "step 0.5 → 10 ×", duration: 25 * second, seeds: 3, service: reference(), load: demand(step{0, 0.5}, step{at, 10}),
			goals: []goal{atLeast(0.88, "goodput of the first 5 s", goodput(at, at+5*second))},
		},
		{
			name: "step 3 → 0.5 ×", duration: 50 * second, seeds: 3, service: reference(), load: demand(step{0, 3}, step{at, 0.5}),
			goals: []goal{atMost(0.0005, "refused or late after 1 s", lost(at+second))},
		},
		{
			name: "service × 4 for 10 s at 0.9 ×", duration: 40 * second, seeds: 5, service: slower, load: steady(0.9),
			goals: []goal{
				atLeast(0.75, "goodput / slow capacity", func(o *outcome) float64 { return 4 * goodput(at, at+10*second)(o) }),
				atLeast(0.90, "goodput / demand, 5 s after", func(o *outcome) float64 { return goodput(at+10*second, at+15*second)(o) / 0.9 }),
			},
		},
		{
			name: "service drifts + 50 % at 0.5 ×", duration: 3 * time.Minute, seeds: 2, service: drifting, load: steady(0.5),
			goals: []goal{atMost(0.001, "refused", refused)},
		},
	}
}

// drift returns changes that make service slower little by little, up to a factor.
func drift(mean time.Duration, factor float64, from, during time.Duration) []simulate.ServiceChange {
	var list []simulate.ServiceChange
	for t := time.Duration(0); t <= during; t += second {
		slower := 1 + (factor-1)*t.Seconds()/during.Seconds()
		list = append(list, simulate.ServiceChange{
			At: from + t, Service: simulate.Service{Mean: time.Duration(slower * float64(mean))},
		})
	}
	return list
}

// prioritized are loads of calls that are not equally important.
func prioritized() []scenario {
	const at = 10 * second
	return []scenario{{
		name: "three priorities at 3 ×", duration: 40 * second, seeds: 3, service: reference(),
		load: func(s service) simulate.Load {
			var load simulate.Load
			for _, p := range []struct {
				priority rule.Priority
				share    float64
			}{{rule.PriorityLow, 0.5}, {rule.PriorityNormal, 0.3}, {rule.PriorityHigh, 0.2}} {
				for _, stream := range demand(step{0, 0.5 * p.share}, step{at, 3 * p.share})(s).Streams {
					stream.Priority = p.priority
					load.Streams = append(load.Streams, stream)
				}
			}
			return load
		},
		goals: []goal{
			atLeast(0.99, "high: served", served(rule.PriorityHigh, at, 40*second)),
			atLeast(0.93, "high: served in the first 2 s", served(rule.PriorityHigh, at, at+2*second)),
			atMost(0.10, "low: served", served(rule.PriorityLow, at, 40*second)),
		},
	}}
}
