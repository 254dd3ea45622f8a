package fairqueue_test

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/fairqueue"
)

// scene is a pool of places with a queue, and the tenants that call. Times are in nanoseconds.
type scene struct {
	honest, flooders int     // tenants
	ask, flood       float64 // what honest tenants and flooders ask for, as parts of the capacity
	long             float64 // how many times as long the calls of flooders are; 0 for 1
	invented         bool    // each call of the flood has a tenant of its own
	calm             float64 // seconds before the flood begins
}

const (
	places    = 100
	perCall   = 10e6 // the mean
	perSecond = places * 1e9 / perCall
	maxQueue  = 10_000
)

// outcome is what came of the honest calls, and of all together.
type outcome struct {
	p99, greatest float64 // of waits, in milliseconds
	refused, used float64 // parts of the honest calls, and of the capacity
}

type simulated struct {
	at     int64 // of its end
	index  int
	honest bool
	came   int64
	began  int64
	cost   int64
	node   fairqueue.Node[simulated]
	charge fairqueue.Charge
	waited bool
}

type ends []*simulated

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at < e[j].at }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(*simulated)) }
func (e *ends) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// world is a run of a scene.
type world struct {
	scene
	r        *rand.Rand
	q        *fairqueue.Queue[simulated]
	underWay ends
	now      int64
	busy     int64            // time that places were taken
	known    *fairqueue.Known // nil if all tenants are the same
	names    int              // that were invented

	waits            []float64
	honest, rejected int
}

// simulate runs a scene for so many seconds.
func simulate(s scene, seconds float64, known *fairqueue.Known) outcome {
	w := &world{scene: s, r: random(7), q: fairqueue.New[simulated](1 << 14), known: known}
	w.q.Flood = maxQueue / 8
	for w.now < int64((s.calm+seconds)*1e9) {
		rate := (s.ask + w.flooding()) * perSecond / 1e9
		next := w.now + int64(w.r.ExpFloat64()/rate)
		for len(w.underWay) > 0 && w.underWay[0].at <= next {
			w.end(heap.Pop(&w.underWay).(*simulated))
		}
		w.now = next
		w.arrive()
	}
	slices.Sort(w.waits)
	return outcome{
		p99: w.waits[len(w.waits)*99/100], greatest: w.waits[len(w.waits)-1],
		refused: float64(w.rejected) / float64(w.honest), used: float64(w.busy) / (float64(w.now) - w.calm*1e9) / places,
	}
}

// flooding returns how many calls the flood asks for now, as a part of the capacity.
func (w *world) flooding() float64 {
	if w.now < int64(w.calm*1e9) {
		return 0
	}
	return w.flood / max(w.long, 1)
}

func (w *world) arrive() {
	c := &simulated{came: w.now, cost: int64(w.r.ExpFloat64() * perCall)}
	flood := w.flooding()
	if c.honest = w.r.Float64()*(w.ask+flood) < w.ask; c.honest {
		c.index = w.flooders + w.r.IntN(w.scene.honest)
		if w.now >= int64(w.calm*1e9) {
			w.honest++
		}
	} else {
		c.index = w.r.IntN(w.flooders)
		c.cost = int64(float64(c.cost) * max(w.long, 1))
		if w.invented {
			w.names++
			c.index = w.flooders + w.scene.honest + w.names
		}
	}
	w.enter(c)
}

func (w *world) enter(c *simulated) {
	isKnown := w.known == nil || w.known.Has(key(c.index), time.Duration(w.now))
	switch {
	case len(w.underWay) < places:
		if w.known != nil && w.r.IntN(8) == 0 {
			w.known.Add(key(c.index), time.Duration(w.now))
		}
		w.begin(c)
	case w.q.Len() >= maxQueue:
		gone := w.q.MakesWay(key(c.index), 1, isKnown)
		if gone == nil {
			w.reject(c)
			return
		}
		w.q.Remove(&gone.node)
		w.reject(gone)
		fallthrough
	default:
		c.waited = true
		w.q.Push(c, &c.node, key(c.index), 1, isKnown)
	}
}

func (w *world) reject(c *simulated) {
	if c.honest {
		w.rejected++
	}
}

func (w *world) begin(c *simulated) {
	c.began, c.at = w.now, w.now+c.cost
	heap.Push(&w.underWay, c)
	if c.honest && w.now > int64((w.calm+1)*1e9) {
		w.waits = append(w.waits, float64(w.now-c.came)/1e6)
	}
	if w.now >= int64(w.calm*1e9) {
		w.busy += c.cost
	}
}

func (w *world) end(c *simulated) {
	w.now = c.at
	if c.waited {
		w.q.Settle(c.charge, c.cost)
	} else {
		w.q.Learn(c.cost)
	}
	if next := w.q.First(); next != nil {
		next.charge = w.q.Serve(&next.node, fairqueue.Unknown)
		if w.known != nil && next.charge.IsKnown() {
			w.known.Add(next.charge.Tenant, time.Duration(w.now))
		}
		w.begin(next)
	}
}

// Of services with 100 places and calls of 10 ms, which are asked for ten times as much as they can
// do, or for as much as is said.
func TestHonestTenantsDoNotWaitForThoseWhoFlood(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scene
		p99, greatest float64 // at most, in milliseconds
	}{
		"one floods after a calm": {scene{honest: 9_999, flooders: 1, ask: .5, flood: 9.5, calm: 3}, 3, 150},
		"100 flood after a calm":  {scene{honest: 9_900, flooders: 100, ask: .5, flood: 9.5, calm: 3}, 3, 150},

		"10 tenants, one floods":                            {scene{honest: 9, flooders: 1, ask: .5, flood: 9.5}, 3, 150},
		"10,000 tenants, one floods":                        {scene{honest: 9_999, flooders: 1, ask: .5, flood: 9.5}, 3, 150},
		"1,000,000 tenants, one floods":                     {scene{honest: 999_999, flooders: 1, ask: .5, flood: 9.5}, 3, 150},
		"10,000 tenants, 100 flood":                         {scene{honest: 9_900, flooders: 100, ask: .5, flood: 9.5}, 3, 150},
		"20 ask four times their share, 10 next to nothing": {scene{honest: 10, flooders: 20, ask: .02, flood: 4}, 3, 150},
		"the calls of the flood are 100 times as long":      {scene{honest: 9, flooders: 1, ask: .5, flood: 9.5, long: 100}, 400, 600},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, known := range []*fairqueue.Known{nil, new(fairqueue.Known)} {
				o := simulate(c.scene, 4, known) // the same numbers each time
				t.Logf("%v %.3v", known != nil, o)
				assert.LessOrEqual(t, o.p99, c.p99, "99 of 100 waits, in ms")
				assert.LessOrEqual(t, o.greatest, c.greatest, "the longest wait, in ms")
				assert.Zero(t, o.refused)
				assert.Greater(t, o.used, .97, "what the pool is used, as calls begin to come when it is empty")
			}
		})
	}
}
