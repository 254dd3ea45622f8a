package adaptive_test

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// workers is a service that has so many workers, which take the calls in their order. Service
// times are exponential, and calls come independently of each other.
type workers struct {
	*scene
	plain   bool // limits are compared with what is there, and nothing else
	passed  []clock.Instant
	random  *rand.Rand
	count   int
	service time.Duration // on average
	ends    endHeap
	waiting []workCall
	served  int
	took    time.Duration // of those that were served, together
}

type workCall struct {
	ticket rule.Ticket
	start  clock.Instant
	end    clock.Instant
}

func newWorkers(t testing.TB, r adaptive.Rule, count int, service time.Duration) *workers {
	return &workers{scene: newScene(t, r), random: rand.New(rand.NewPCG(1, 2)), count: count, service: service}
}

// source is calls of one priority that come at random.
type source struct {
	rate     float64
	priority rule.Priority
	caller   string // "" if it is not known
}

// run has calls come for so long, and returns how many came and passed of each source.
func (w *workers) run(d time.Duration, sources ...source) []outcome {
	outcomes := make([]outcome, len(sources))
	next := make([]clock.Instant, len(sources))
	for i, s := range sources {
		next[i] = w.now.Add(w.draw(time.Duration(float64(time.Second) / s.rate)))
	}
	for until := w.now.Add(d); ; {
		first := 0
		for i := range next {
			if next[i] < next[first] {
				first = i
			}
		}
		if next[first] > until {
			w.endUntil(until)
			w.now = until
			return outcomes
		}
		w.endUntil(next[first])
		w.now = next[first]
		next[first] = w.now.Add(w.draw(time.Duration(float64(time.Second) / sources[first].rate)))
		outcomes[first].arrived++
		ticket, decision := w.acquire(sources[first])
		if decision != rule.Pass {
			continue
		}
		outcomes[first].passed++
		w.waiting = append(w.waiting, workCall{ticket: ticket, start: w.now})
		w.serve()
	}
}

// acquire asks the limiter, or compares with the limits.
func (w *workers) acquire(of source) (rule.Ticket, rule.Decision) {
	if !w.plain {
		return w.limiter.Acquire(w.request(of.priority, of.caller))
	}
	const bucket = clock.Instant(100 * time.Millisecond)
	for len(w.passed) > 0 && w.passed[0]/bucket <= w.now/bucket-10 {
		w.passed = w.passed[1:]
	}
	if limit := w.rule.Concurrency; limit > 0 && len(w.ends)+len(w.waiting) >= limit {
		return 0, rule.Block
	}
	if limit := w.rule.QPS; limit > 0 && float64(len(w.passed)) >= limit {
		return 0, rule.Block
	}
	w.passed = append(w.passed, w.now)
	return 0, rule.Pass
}

func (w *workers) draw(mean time.Duration) time.Duration {
	return time.Duration(w.random.ExpFloat64() * float64(mean))
}

func (w *workers) serve() {
	for len(w.waiting) > 0 && len(w.ends) < w.count {
		c := w.waiting[0]
		w.waiting = w.waiting[1:]
		c.end = w.now.Add(w.draw(w.service))
		heap.Push(&w.ends, c)
	}
}

// endUntil ends the calls that end until then.
func (w *workers) endUntil(then clock.Instant) {
	for len(w.ends) > 0 && w.ends[0].end <= then {
		c := heap.Pop(&w.ends).(workCall)
		w.now = c.end
		if !w.plain {
			w.limiter.Done(c.ticket, rule.Exit{Start: c.start, Now: c.end})
		}
		w.served++
		w.took += c.end.Sub(c.start)
		w.serve()
	}
}

// measure forgets what was served before.
func (w *workers) measure() { w.served, w.took = 0, 0 }

// mean returns the mean response time.
func (w *workers) mean() time.Duration { return w.took / time.Duration(max(1, w.served)) }

// capacity returns how many calls the workers can serve in a second.
func (w *workers) capacity() float64 { return float64(w.count) / w.service.Seconds() }

// endHeap is calls that are served, the one that ends first at the front.
type endHeap []workCall

func (h endHeap) Len() int           { return len(h) }
func (h endHeap) Less(i, j int) bool { return h[i].end < h[j].end }
func (h endHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *endHeap) Push(x any)        { *h = append(*h, x.(workCall)) }

func (h *endHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
