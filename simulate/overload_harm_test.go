package simulate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// everyday is an event in a service that is short of nothing, or of which one resource is short
// of something of its own.
type everyday struct {
	name    string
	streams []simulate.Stream
	servers []simulate.Server
	length  time.Duration
	spared  map[string]float64 // resources, and the share of their calls that may be refused
}

// remote serves a resource as something else does that has room for all calls.
func remote(resource string, mean time.Duration, shape simulate.Shape, changes ...simulate.ServiceChange) simulate.Server {
	return simulate.Server{
		Name: resource, Resources: []string{resource}, Unlimited: true,
		Service: simulate.Service{Mean: mean, Shape: shape}, Changes: changes,
	}
}

// workers serve a resource.
func workers(resource string, n int, mean time.Duration, changes ...simulate.ServiceChange) simulate.Server {
	s := remote(resource, mean, simulate.Exponential, changes...)
	s.Unlimited, s.Workers = false, n
	return s
}

func from(at, mean time.Duration) simulate.ServiceChange {
	return simulate.ServiceChange{At: at, Service: simulate.Service{Mean: mean}}
}

func calls(resource string, rate float64) simulate.Stream {
	return simulate.Stream{Resource: resource, Rate: rate, Shape: simulate.Poisson, Inbound: true}
}

func everydayEvents() []everyday {
	const exponential, constant, s = simulate.Exponential, simulate.Constant, time.Second
	late := calls("reports", 150)
	late.From = 10 * s
	job := calls("job", 50)
	job.From, job.Until = 10*s, 20*s
	more := calls("answer", 15)
	more.From = 13 * s
	return []everyday{
		{"a dependency becomes slow", []simulate.Stream{calls("products", 500), calls("pay", 50)}, []simulate.Server{
			remote("products", 5*ms, exponential), remote("pay", 20*ms, exponential, from(10*s, s)),
		}, 30 * s, map[string]float64{"products": 0.001, "pay": 0.05}},
		{"a dependency of half of the calls becomes slow", []simulate.Stream{calls("products", 500), calls("pay", 500)}, []simulate.Server{
			remote("products", 5*ms, exponential), remote("pay", 20*ms, exponential, from(10*s, 300*ms)),
		}, 30 * s, map[string]float64{"products": 0.001, "pay": 0.05}},
		{"a dependency hangs", []simulate.Stream{calls("products", 300), calls("pay", 100)}, []simulate.Server{
			remote("products", 5*ms, exponential), remote("pay", 5*ms, exponential, from(10*s, 100*s), from(20*s, 5*ms)),
		}, 40 * s, map[string]float64{"products": 0.001}},
		{"a slow endpoint starts to be called", []simulate.Stream{calls("pages", 100), late}, []simulate.Server{
			remote("pages", ms/2, exponential), remote("reports", 50*ms, exponential),
		}, 30 * s, map[string]float64{"pages": 0, "reports": 0}},
		{"a pool of its own is overloaded", []simulate.Stream{calls("pages", 100), calls("reports", 150)}, []simulate.Server{
			remote("pages", ms/2, exponential), workers("reports", 4, 50*ms),
		}, 30 * s, map[string]float64{"pages": 0.01}},
		{"calls of twenty seconds", []simulate.Stream{calls("pages", 200), calls("export", 1)}, []simulate.Server{
			remote("pages", 2*ms, exponential), remote("export", 20*s, constant),
		}, 80 * s, map[string]float64{"pages": 0, "export": 0}},
		{"watches that stay", []simulate.Stream{calls("pages", 200), calls("watch", 1)}, []simulate.Server{
			remote("pages", 2*ms, exponential), remote("watch", time.Hour, constant),
		}, 120 * s, map[string]float64{"pages": 0, "watch": 0}},
		{"a deploy makes calls three times as long", []simulate.Stream{calls("pages", 370)}, []simulate.Server{
			workers("pages", 16, 10*ms, from(10*s, 30*ms)),
		}, 40 * s, map[string]float64{"pages": 0.01}},
		{"a cold start with long calls", []simulate.Stream{calls("chat", 12)}, []simulate.Server{
			remote("chat", 5*s, exponential),
		}, 120 * s, map[string]float64{"chat": 0}},
		{"more answers of a model are asked for", []simulate.Stream{calls("pages", 640), calls("answer", 1.75), more}, []simulate.Server{
			workers("pages", 4, 3*ms), remote("answer", 12500*ms, exponential),
		}, 45 * s, map[string]float64{"pages": 0.001, "answer": 0.01}},
		{"a nightly job", []simulate.Stream{calls("pages", 300), job}, []simulate.Server{
			remote("pages", 5*ms, exponential), remote("job", 2*s, exponential),
		}, 30 * s, map[string]float64{"pages": 0, "job": 0}},
	}
}

// A rule for all inbound calls does no harm where nothing is short, and none to those who are
// not.
func TestEverydayEventsAreNoOverload(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("some seconds of simulation")
	}
	set := rules.Set{Adaptive: []adaptive.Rule{{Name: "shed"}}}
	for _, event := range everydayEvents() {
		t.Run(event.name, func(t *testing.T) {
			t.Parallel()
			offered, blocked := map[string]int{}, map[string]int{}
			load := simulate.Load{Seed: 1, Streams: event.streams, Servers: event.servers}
			for i := range load.Streams {
				if load.Streams[i].Until == 0 {
					load.Streams[i].Until = event.length
				}
			}
			for _, s := range run(t, set, load, event.length).Seconds {
				offered[s.Resource] += s.Offered
				blocked[s.Resource] += s.Blocked
			}
			for resource, most := range event.spared {
				assert.LessOrEqual(t, float64(blocked[resource])/float64(offered[resource]), most, resource)
			}
		})
	}
}

// A resource with long calls that floods what others use, too, is not spared because its calls are too long to suffer.
func TestFloodOfLongCallsCostsOthersLittle(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("some seconds of simulation")
	}
	const from, until = 10 * time.Second, 30 * time.Second
	service := func(resource string, mean time.Duration) simulate.ResourceService {
		return simulate.ResourceService{Resources: []string{resource}, Service: simulate.Service{Mean: mean, Shape: simulate.Exponential}}
	}
	load := simulate.Load{Seed: 1, Streams: []simulate.Stream{
		calls("pages", 1275), calls("search", 475), calls("cart", 170), calls("reports", 6), calls("reports", 111),
	}, Servers: []simulate.Server{{
		Name: "workers", Resources: []string{"*"}, Workers: 16,
		Services: []simulate.ResourceService{
			service("pages", ms), service("search", 3*ms), service("cart", 5*ms), service("reports", 170*ms),
		},
	}}}
	for i := range load.Streams {
		load.Streams[i].Until = until
	}
	load.Streams[4].From = from
	offered, blocked := map[string]int{}, map[string]int{}
	for _, s := range run(t, rules.Set{Adaptive: []adaptive.Rule{{Name: "shed"}}}, load, until).Seconds {
		if s.Second >= int(from.Seconds()) {
			offered[s.Resource] += s.Offered
			blocked[s.Resource] += s.Blocked
		}
	}
	for _, resource := range []string{"pages", "search", "cart"} {
		assert.LessOrEqual(t, float64(blocked[resource])/float64(offered[resource]), 0.1, resource)
	}
}
