package simulate

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/penstock-go/penstock/internal/match"
)

// server is a [Server] at work.
type server struct {
	of       Server
	services []service // of calls that no ResourceService is for, then of each of these
	stalls   []Stall   // that are not over
	quota    quota
	random   *rand.Rand // of service times
	visits   *rand.Rand // of which calls visit the server

	busy    int     // workers
	waiting []*call // for a worker, from next on
	next    int

	workDone time.Duration // by all workers, up to counted; under a quota what was taken from it
	counted  time.Duration

	waits         []time.Duration // of those that began to work since they were read, if measuresWaits
	measuresWaits bool
}

// service is a [Service] at work.
type service struct {
	Service
	changes []ServiceChange // to come
}

// stage is a server that calls of a stream visit.
type stage struct {
	server  int     // its index
	service int     // what it has for them: the index among its services
	share   float64 // of the calls
}

// newServers returns the servers of an instance.
func newServers(load Load, instance int) []*server {
	servers := make([]*server, len(load.Servers))
	for i, of := range load.Servers {
		servers[i] = &server{
			of: of, services: []service{{of.Service, of.Changes}}, stalls: of.Stalls, quota: quota{of: of.Quota},
			random: newRandom(load.Seed, randomService, i, instance), visits: newRandom(load.Seed, randomVisits, i, instance),
		}
		for _, r := range of.Services {
			servers[i].services = append(servers[i].services, service{r.Service, r.Changes})
		}
	}
	return servers
}

// stagesOf returns, for each resource of the load, the servers that its calls visit, in
// order.
func stagesOf(load Load) map[string][]stage {
	stages := make(map[string][]stage)
	resources := resourcesOf(load)
	for i, s := range load.Servers {
		serves := matcher(s.Resources)
		var special []func(string) bool
		for _, r := range s.Services {
			special = append(special, matcher(r.Resources))
		}
		for _, name := range resources {
			if !serves(name) {
				continue
			}
			at := stage{server: i, share: cmp.Or(s.Share, 1)}
			if j := slices.IndexFunc(special, func(matches func(string) bool) bool { return matches(name) }); j >= 0 {
				at.service, at.share = j+1, cmp.Or(s.Services[j].Share, at.share)
			}
			stages[name] = append(stages[name], at)
		}
	}
	return stages
}

// matcher returns whether a resource has one of the names, or matches one of the globs.
func matcher(names []string) func(resource string) bool {
	var patterns []match.Pattern
	for _, name := range names {
		if pattern, err := match.Compile(name); err == nil {
			patterns = append(patterns, pattern)
		}
	}
	return func(resource string) bool {
		matches := func(p match.Pattern) bool { return p.Matches(resource) }
		return slices.Contains(names, resource) || slices.ContainsFunc(patterns, matches)
	}
}

// visit moves a call to the next server that it visits, if there is one.
func (c *call) visit() bool {
	for c.next < len(c.stream.stages) {
		at := c.stream.stages[c.next]
		c.next++
		if s := c.instance.servers[at.server]; at.share >= 1 || s.visits.Float64() < at.share {
			c.server, c.service = s, at.service
			return true
		}
	}
	return false
}

// accept takes a call that has passed: a free worker begins at once, else the
// call waits for one. It returns the call that is begun, if any.
func (s *server) accept(now time.Duration, c *call) *call {
	s.wait(now, c)
	if s.of.Unlimited || s.busy < s.of.Workers {
		return s.begin(now)
	}
	return nil
}

// wait has a call wait behind the others.
func (s *server) wait(now time.Duration, c *call) {
	c.waitsSince = now
	s.waiting = append(s.waiting, c)
}

// release frees the worker of a call whose work has ended and returns the call
// that the worker begins next, if any.
func (s *server) release(now time.Duration) *call {
	s.count(now)
	s.busy--
	if s.next == len(s.waiting) {
		return nil
	}
	return s.begin(now)
}

// turn ends the time slice of a call that is not served yet: it waits again, behind the
// others. It returns the call that the worker goes on with.
func (s *server) turn(now time.Duration, c *call) *call {
	s.wait(now, c)
	return s.release(now)
}

// begin takes the call that has waited longest.
func (s *server) begin(now time.Duration) *call {
	c := s.waiting[s.next]
	if s.measuresWaits {
		s.waits = append(s.waits, now-c.waitsSince)
	}
	s.waiting[s.next] = nil
	if s.next++; s.next == len(s.waiting) {
		s.waiting, s.next = s.waiting[:0], 0
	} else if s.next >= 1024 && s.next > len(s.waiting)/2 {
		left := copy(s.waiting, s.waiting[s.next:])
		clear(s.waiting[left:])
		s.waiting, s.next = s.waiting[:left], 0
	}
	return c
}

// work has a worker begin or go on with a call at now, and returns how long that takes: at
// least a nanosecond. The call is served then if it has no work left.
func (s *server) work(now time.Duration, c *call) (time.Duration, error) {
	s.count(now)
	s.busy++
	if c.workLeft == 0 {
		work, err := s.draw(now, c.service)
		if err != nil {
			return 0, err
		}
		c.workLeft = work
	}
	slice := c.workLeft
	if s.of.TimeSlice > 0 {
		slice = min(slice, s.of.TimeSlice)
	}
	c.workLeft -= slice
	if s.of.Quota.present() {
		s.workDone += slice
	}
	return s.stalled(now, s.quota.take(now, slice)), nil
}

// draw returns how much work there is for a call whose service, one of those that the
// server has, begins at now.
func (s *server) draw(now time.Duration, of int) (time.Duration, error) {
	slower := 1 + s.of.Slowdown*float64(len(s.waiting)-s.next)
	work := s.services[of].at(now).draw(s.random) * slower
	if work > float64(maxHorizon-now) {
		return 0, fmt.Errorf("server %q would be busy for more than %.0f years: shorten its service or lower the rates",
			s.of.Name, maxHorizon.Hours()/24/365)
	}
	if s.of.TimeSlice > 0 && work > float64(maxTimeSlices*s.of.TimeSlice) {
		return 0, fmt.Errorf("a call would have more than %d time slices of server %q: shorten its service or lengthen timeSlice",
			maxTimeSlices, s.of.Name)
	}
	return max(1, time.Duration(math.Round(work))), nil
}

// at returns what service is like at a time. Times must not go back.
func (s *service) at(now time.Duration) Service {
	for len(s.changes) > 0 && s.changes[0].At <= now {
		s.Service = s.changes[0].Service.after(s.Service)
		s.changes = s.changes[1:]
	}
	return s.Service
}

// stalled returns how long work that begins at now takes with the stalls on its way.
func (s *server) stalled(now, took time.Duration) time.Duration {
	for len(s.stalls) > 0 && s.stalls[0].end() <= now {
		s.stalls = s.stalls[1:]
	}
	end := now + took
	for _, stall := range s.stalls {
		if stall.At >= end {
			break
		}
		end += stall.end() - max(stall.At, now)
	}
	return end - now
}

func (s Stall) end() time.Duration { return s.At + s.For }

// maxHorizon is the latest time of an event.
const maxHorizon = 100 * 365 * 24 * time.Hour

// draw returns a service time in nanoseconds.
func (s Service) draw(random *rand.Rand) float64 {
	mean := float64(s.Mean)
	switch s.Shape {
	case Exponential:
		return mean * random.ExpFloat64()
	case Lognormal:
		sigma := s.sigma()
		return mean * math.Exp(sigma*random.NormFloat64()-sigma*sigma/2)
	case Bimodal:
		quick := mean / (1 + s.SlowShare*(s.SlowFactor-1))
		if random.Float64() < s.SlowShare {
			return quick * s.SlowFactor
		}
		return quick
	default:
		return mean
	}
}

// normal99 is the 99th percentile of the standard normal distribution.
const normal99 = 2.3263478740408408

// sigma returns the standard deviation of the logarithm of a lognormal service
// time: P99/Mean = exp(normal99·sigma - sigma²/2), of which it is the lesser
// solution.
func (s Service) sigma() float64 {
	ratio := float64(s.P99) / float64(s.Mean)
	return normal99 - math.Sqrt(normal99*normal99-2*math.Log(ratio))
}
