package simulate

import (
	"math"
	"math/rand/v2"
	"sort"
	"time"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
)

// network is what lies between the instances and the backend, and the backend itself.
type network struct {
	store   *memory.Store
	latency Service
	loss    float64
	outages []Outage
	over    int // outages that were over when the backend was asked last
	random  *rand.Rand
}

func newNetwork(load Load, store *memory.Store) *network {
	n := &network{
		store: store, latency: load.Fleet.Latency, loss: load.Fleet.Loss, outages: load.Fleet.Outages,
		random: newRandom(load.Seed, randomNetwork, 0, 0),
	}
	if n.latency.Mean == 0 {
		n.latency = Service{Mean: defaultLatency}
	}
	return n
}

// roundTrip is what becomes of a request and its reply.
type roundTrip struct {
	asked    time.Duration // when the request reaches the backend
	made     bool          // the backend is there then
	replied  time.Duration // when the reply arrives, or the instance gives up
	answered bool
	err      error // what the backend said
}

// send decides what becomes of a request that is sent now by an instance that gives up after
// the timeout.
func (n *network) send(now, timeout time.Duration) roundTrip {
	latency := time.Duration(math.Round(min(n.latency.draw(n.random), float64(MaxDuration))))
	lost := n.random.Float64() < n.loss
	r := roundTrip{asked: now + latency/2, replied: now + latency}
	r.made = !n.away(r.asked)
	r.answered = r.made && !lost && !n.away(r.replied)
	if !r.answered {
		r.replied = now + timeout
	}
	return r
}

// away says whether the backend does not answer at a time.
func (n *network) away(t time.Duration) bool {
	i := sort.Search(len(n.outages), func(i int) bool { return n.outages[i].Until > t })
	return i < len(n.outages) && n.outages[i].From <= t
}

// backend returns the backend for a request that is made now, after what outages until then
// have done to it.
func (n *network) backend(now time.Duration) fleet.Store {
	for ; n.over < len(n.outages) && n.outages[n.over].Until <= now; n.over++ {
		if n.outages[n.over].Empty {
			n.store.Flush()
		}
	}
	return n.store
}
