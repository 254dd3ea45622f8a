package simulate

import "time"

// Server serves the calls of some resources with a number of workers. Calls that
// have passed the rules are served first come, first served. While a call waits
// for a worker it is under way: the rules have let it through.
type Server struct {
	// Name is used in messages. It may be empty; no two servers have the same.
	Name string

	// Resources are the names of resources, or globs that match them. A resource
	// has at most one server, and a server at least one resource of the load.
	Resources []string

	// Workers is how many calls are served at once, from 1 to [MaxWorkers].
	Workers int

	// Service is how long a worker needs for a call.
	Service Service

	// Slowdown is the share by which each call that waits for a worker makes
	// service slower: a call whose service begins while n others wait takes
	// 1 + n·Slowdown times as long. From 0 to [MaxSlowdown].
	Slowdown float64

	// Changes are what service is like from some times on, by time.
	Changes []ServiceChange
}

// Service is a distribution of service times.
type Service struct {
	// Mean is the mean service time, more than 0 and at most [MaxDuration].
	Mean time.Duration

	// Shape defaults to [Constant].
	Shape ServiceShape

	// P99 is the service time that 99 of 100 calls stay within. It belongs to
	// [Lognormal], which needs it: more than Mean and at most [MaxTail] times Mean.
	P99 time.Duration
}

// ServiceShape is how service times vary.
type ServiceShape string

// The shapes of service times.
const (
	Constant    ServiceShape = "constant"    // all are the mean
	Exponential ServiceShape = "exponential" // random, without memory
	Lognormal   ServiceShape = "lognormal"   // random, with a few that are very long
)

// ServiceChange is a change of a server's service times.
type ServiceChange struct {
	// At is when it takes effect, from 0 to [MaxDuration]: calls whose service
	// begins then, or later, take the new time.
	At time.Duration

	// Service is what service is like from then on. What is left out stays as it
	// was; P99 keeps its ratio to the mean.
	Service Service
}

// after returns the service that follows another one.
func (s Service) after(before Service) Service {
	if s.Shape == "" {
		s.Shape = before.Shape
	}
	if s.Mean == 0 {
		s.Mean = before.Mean
	}
	if s.P99 == 0 && s.Shape == Lognormal && before.Shape == Lognormal && before.Mean > 0 {
		s.P99 = time.Duration(float64(before.P99) / float64(before.Mean) * float64(s.Mean))
	}
	return s
}
