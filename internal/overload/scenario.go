package overload

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// scenario is a load on a service, and what a protection should make of it.
type scenario struct {
	name     string
	title    string // of a scene that is a file: what happens
	duration time.Duration
	seeds    int                         // with how many it is run; a goal is about the mean of them
	seed     uint64                      // the one before the first
	service  service                     // that serves all calls; of a scene the load has the servers
	rules    rules.Set                   // that the service has beside its protection
	load     func(service) simulate.Load // without its seed and the server
	goals    []goal
}

// isScene says whether the scenario is one that is a file.
func (s scenario) isScene() bool { return s.service.workers == 0 }

// loadWith returns the whole load, with a seed.
func (s scenario) loadWith(seed uint64) simulate.Load {
	load := s.load(s.service)
	load.Seed = seed
	if !s.isScene() {
		load.Servers = []simulate.Server{s.service.server()}
	}
	return load
}

// expectedCalls returns about how many calls a run has.
func (s scenario) expectedCalls() float64 {
	calls := 0.0
	for _, stream := range s.load(s.service).Streams {
		until := s.duration
		if stream.Until > 0 {
			until = stream.Until
		}
		calls += float64(len(stream.Times)) + stream.Rate*(until-stream.From).Seconds()
	}
	return calls
}

// goal is something that can be measured, and the bound that it should keep.
type goal struct {
	name    string
	least   float64 // NaN if there is none
	most    float64 // NaN if there is none
	measure func(*outcome) float64
	unit    unit
}

func atLeast(least float64, name string, measure func(*outcome) float64) goal {
	return goal{name: name, least: least, most: math.NaN(), measure: measure}
}

func atMost(most float64, name string, measure func(*outcome) float64) goal {
	return goal{name: name, least: math.NaN(), most: most, measure: measure}
}

// reached says whether a value keeps the bound. NaN does not.
func (g goal) reached(value float64) bool {
	return !math.IsNaN(value) && !(value < g.least) && !(value > g.most)
}

// service is what serves the calls. Clients give up after its patience.
type service struct {
	workers  int
	mean     time.Duration
	shape    simulate.Shape
	p99      time.Duration // of a lognormal one
	slowdown float64       // by each call that waits for a worker
	patience time.Duration
	changes  []simulate.ServiceChange
	stalls   []simulate.Stall

	slowShare, slowFactor float64 // of a bimodal one
}

// reference is the service of all scenarios that do not say otherwise.
func reference() service {
	return service{
		workers: 8, mean: 10 * time.Millisecond, shape: simulate.Exponential, slowdown: 0.02, patience: 200 * time.Millisecond,
	}
}

// heavyTail returns the service with a lognormal service time whose logarithm has the
// standard deviation 1.5.
func (s service) heavyTail() service {
	const sigma, normal99 = 1.5, 2.3263478740408408
	s.shape, s.p99 = simulate.Lognormal, time.Duration(float64(s.mean)*math.Exp(normal99*sigma-sigma*sigma/2))
	return s
}

func (s service) with(change func(*service)) service {
	change(&s)
	return s
}

// capacity returns how many calls per second the workers serve when none waits.
func (s service) capacity() float64 { return float64(s.workers) / s.mean.Seconds() }

func (s service) server() simulate.Server {
	return simulate.Server{
		Name: "service", Resources: []string{"work"}, Workers: s.workers, Slowdown: s.slowdown,
		Service: simulate.Service{Mean: s.mean, Shape: s.shape, P99: s.p99, SlowShare: s.slowShare, SlowFactor: s.slowFactor},
		Changes: s.changes, Stalls: s.stalls,
	}
}

// step is a demand from a time on, in multiples of the capacity.
type step struct {
	from   time.Duration
	demand float64
}

// demand returns the load of independent callers, by steps.
func demand(steps ...step) func(service) simulate.Load {
	return func(s service) simulate.Load {
		var load simulate.Load
		for i, at := range steps {
			stream := s.stream(at.demand * s.capacity())
			stream.From = at.from
			if i+1 < len(steps) {
				stream.Until = steps[i+1].from
			}
			load.Streams = append(load.Streams, stream)
		}
		return load
	}
}

// steady returns a load that stays the same.
func steady(multiple float64) func(service) simulate.Load { return demand(step{0, multiple}) }

// stream returns calls of independent callers.
func (s service) stream(rate float64) simulate.Stream {
	return simulate.Stream{Resource: "work", Rate: rate, Shape: simulate.Poisson, Inbound: true, Timeout: s.patience}
}
