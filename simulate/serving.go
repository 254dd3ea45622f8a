package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/penstock-go/penstock/match"
)

// server is a [Server] at work.
type server struct {
	of      Server
	service Service         // present
	changes []ServiceChange // to come
	stalls  []Stall         // that are not over
	quota   quota
	random  *rand.Rand

	busy    int     // workers
	waiting []*call // for a worker, from next on
	next    int

	workDone time.Duration // by all workers, up to counted; under a quota what was taken from it
	counted  time.Duration
}

// newServers returns the servers of an instance.
func newServers(load Load, instance int) []*server {
	servers := make([]*server, len(load.Servers))
	for i, of := range load.Servers {
		servers[i] = &server{
			of: of, service: of.Service, changes: of.Changes, stalls: of.Stalls, quota: quota{of: of.Quota},
			random: newRandom(load.Seed, randomService, i, instance),
		}
	}
	return servers
}

// servedBy returns, for each resource of the load, the indexes of the servers that
// serve it: at most one in a valid load.
func servedBy(load Load) map[string][]int {
	served := make(map[string][]int)
	resources := resourcesOf(load)
	for i, s := range load.Servers {
		var patterns []match.Pattern
		for _, of := range s.Resources {
			if pattern, err := match.Compile(of); err == nil {
				patterns = append(patterns, pattern)
			}
		}
		for _, name := range resources {
			matches := func(p match.Pattern) bool { return p.Matches(name) }
			if slices.Contains(s.Resources, name) || slices.ContainsFunc(patterns, matches) {
				served[name] = append(served[name], i)
			}
		}
	}
	return served
}

// accept takes a call that has passed: a free worker begins at once, else the
// call waits for one. It returns the call that is begun, if any.
func (s *server) accept(c *call) *call {
	s.waiting = append(s.waiting, c)
	if s.busy < s.of.Workers {
		return s.begin()
	}
	return nil
}

// release frees the worker of a call whose work has ended and returns the call
// that the worker begins next, if any.
func (s *server) release(now time.Duration) *call {
	s.count(now)
	s.busy--
	if s.next == len(s.waiting) {
		return nil
	}
	return s.begin()
}

// turn ends the time slice of a call that is not served yet: it waits again, behind the
// others. It returns the call that the worker goes on with.
func (s *server) turn(now time.Duration, c *call) *call {
	s.waiting = append(s.waiting, c)
	return s.release(now)
}

// begin takes the call that has waited longest.
func (s *server) begin() *call {
	c := s.waiting[s.next]
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
		work, err := s.draw(now)
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

// draw returns how much work there is for a call whose service begins at now.
func (s *server) draw(now time.Duration) (time.Duration, error) {
	for len(s.changes) > 0 && s.changes[0].At <= now {
		s.service = s.changes[0].Service.after(s.service)
		s.changes = s.changes[1:]
	}
	slower := 1 + s.of.Slowdown*float64(len(s.waiting)-s.next)
	work := s.service.draw(s.random) * slower
	if work > float64(maxHorizon-now) {
		return 0, fmt.Errorf("server %q would be busy for more than %.0f years: shorten its service or lower the rates",
			s.of.Name, maxHorizon.Hours()/24/365)
	}
	if s.of.TimeSlice > 0 && work > float64(MaxTimeSlices*s.of.TimeSlice) {
		return 0, fmt.Errorf("a call would have more than %d time slices of server %q: shorten its service or lengthen timeSlice",
			MaxTimeSlices, s.of.Name)
	}
	return max(1, time.Duration(math.Round(work))), nil
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

// count adds the work done until now.
func (s *server) count(now time.Duration) {
	if !s.of.Quota.present() {
		s.workDone += time.Duration(s.busy) * (now - s.counted)
	}
	s.counted = now
}

// workers returns how many workers can be busy all the time.
func (s *server) workers() float64 {
	if s.of.Quota.present() {
		return float64(s.of.Quota.Time) / float64(s.of.Quota.Period)
	}
	return float64(s.of.Workers)
}

// utilisation returns the share of the workers that was busy, on average, in the
// time that elapsed since the last call of this function; 0 without servers.
func utilisation(servers []*server, now, elapsed time.Duration) float64 {
	var done, workers float64
	for _, s := range servers {
		s.count(now)
		done += float64(s.workDone)
		s.workDone = 0
		workers += s.workers()
	}
	if workers == 0 || elapsed == 0 {
		return 0
	}
	return min(1, done/(workers*float64(elapsed))) // time slices are taken as they begin
}
