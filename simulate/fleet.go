package simulate

import "time"

// Fleet is how the instances of the service share limits, see [Options.Instances]: which
// calls they get, and the network between them and the backend that counts for all of them.
//
// There is one backend, which keeps its counts in memory and answers as a Redis server
// would. It has a part in the simulation only if there are rules whose limit is that of the
// fleet.
type Fleet struct {
	// Latency is the time from a request of an instance to the reply, when the backend
	// answers: the request takes half of it. Defaults to 1 ms.
	Latency Service

	// Loss is the share of replies that get lost, from 0 to 1: the backend has done what
	// was asked, but the instance does not learn of it.
	Loss float64

	// Outages are times in which the backend does not answer, by time and without overlap.
	Outages []Outage

	// Skew is the share of the calls of each stream that goes to the first instance, from 0
	// to 1; the other instances get the rest, evenly. Which calls these are is drawn from
	// the seed. Nil spreads calls evenly over all instances. It has no effect on one
	// instance.
	Skew *float64
}

// defaultLatency is the latency of a [Fleet] that has none.
const defaultLatency = time.Millisecond

// Outage is a time in which the backend does nothing: it makes no requests, and sends no
// replies.
type Outage struct {
	From  time.Duration // from 0 to [MaxDuration]
	Until time.Duration // later than From; at most [MaxDuration]
	Empty bool          // the backend has lost all counts when it is back
}
