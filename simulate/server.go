package simulate

import (
	"cmp"
	"time"
)

// Server serves the calls of some resources with a number of workers. Calls that
// have passed the rules are served first come, first served. While a call waits
// for a worker it is under way: the rules have let it through.
//
// A resource may have several servers, such as the processors of the service, a pool of
// connections and a remote service. Its calls visit one after the other, in the order of
// [Load.Servers], and end when the last one has served them.
type Server struct {
	// Name is used in messages. It may be empty; no two servers have the same.
	Name string

	// Resources are the names of resources, or globs that match them: at least one of the
	// load.
	Resources []string

	// Share is the share of their calls that visit the server, more than 0 and at most 1,
	// such as those that miss a cache. Each call is drawn by itself; the others go on to
	// the next server. Defaults to 1.
	Share float64

	// Guard is a resource under which the service guards what it asks of the server, as a
	// client of a database may be guarded: a call that has come to the server passes the
	// rules of that resource too, as a call of its own with the same priority, and is under
	// way meanwhile. If they refuse it, it fails then. Defaults to no guard.
	Guard string

	// Workers is how many calls are served at once, from 1 to a million.
	Workers int

	// Unlimited says that there are no Workers: all calls are served at once, as by a
	// remote service that has capacity to spare.
	Unlimited bool

	// Service is how long a worker needs for a call. It may be left out if Services say so
	// for all resources.
	Service Service

	// Services are how long workers need for calls of some of the resources, in place of
	// Service. Of those that match a resource, the first counts.
	Services []ResourceService

	// TimeSlice is how long a worker serves a call before it takes the one that has
	// waited longest, and the call waits again behind the others: so do calls share the
	// processors of a service that computes, in Go with time slices of 10 ms. 0 means
	// until the call is served; else it is from 100 µs to a second.
	TimeSlice time.Duration

	// Quota bounds the processor time of all workers together. It needs a TimeSlice: a
	// worker takes the time of a slice from the quota when it begins the slice, and stands
	// still while there is none left.
	Quota Quota

	// Slowdown is the share by which each call that waits for a worker makes
	// service slower: a call whose service begins while n others wait takes
	// 1 + n·Slowdown times as long. From 0 to 1,000.
	Slowdown float64

	// Changes are what Service is like from some times on, by time.
	Changes []ServiceChange

	// Stalls are times in which all workers stand still, by time and without overlap:
	// what they are at goes on afterwards. They count as busy meanwhile.
	Stalls []Stall
}

// ResourceService is how long the workers of a server need for calls of some of its
// resources.
type ResourceService struct {
	// Resources are names or globs: at least one that the server serves and that no
	// ResourceService before this one matches.
	Resources []string

	// Share is that of the server for calls of these resources. Defaults to
	// [Server.Share].
	Share float64

	Service Service
	Changes []ServiceChange // of Service, by time
}

// Quota is how much processor time there is in each period, as for a container. What is
// not used in a period is lost. The zero Quota is no bound.
type Quota struct {
	Time   time.Duration // at least 1 ms, and less than the workers have in a period
	Period time.Duration // from 1 ms to a second; that of most containers is 100 ms
}

// Stall is a time in which a server does nothing, such as a long pause of garbage
// collection or the failover of a database.
type Stall struct {
	At  time.Duration // from 0 to [MaxDuration]
	For time.Duration // more than 0, at most [MaxDuration]
}

// Service is a distribution of service times.
type Service struct {
	// Mean is the mean service time, more than 0 and at most [MaxDuration].
	Mean time.Duration

	// Shape is [Constant], the default, [Exponential], [Lognormal] or [Bimodal].
	Shape Shape

	// P99 is the service time that 99 of 100 calls stay within. It belongs to
	// [Lognormal], which needs it: more than Mean and at most 14 times Mean.
	P99 time.Duration

	// SlowShare is the share of calls that are slow, and SlowFactor how many times as
	// long as the others they take. They belong to [Bimodal], which needs them: a share
	// between 0 and 1, and a factor of more than 1 and at most 10,000.
	SlowShare, SlowFactor float64
}

// ServiceChange is a change of a server's service times.
type ServiceChange struct {
	// At is when it takes effect, from 0 to [MaxDuration]: calls whose service
	// begins then, or later, take the new time.
	At time.Duration

	// Service is what service is like from then on. What is left out stays as it
	// was; P99 keeps its ratio to the mean, and so do slow and other calls.
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
	if s.Shape == Bimodal && before.Shape == Bimodal {
		s.SlowShare, s.SlowFactor = cmp.Or(s.SlowShare, before.SlowShare), cmp.Or(s.SlowFactor, before.SlowFactor)
	}
	return s
}
