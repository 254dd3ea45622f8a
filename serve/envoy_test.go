package serve

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// envoyBucket is a bucket of Envoy's quota filter, as its sources have it: what
// global_client_impl.cc and filter_persistence.cc do, and not what the comments of the proto say.
type envoyBucket struct {
	newer bool // a changed assignment is as full as the one before; older sources: full

	assigned  bool
	is        assignment
	tokens    float64
	expiresAt clock.Instant

	allowed, denied float64 // since the last report was built
	reportedAt      clock.Instant
}

// decide decides on n requests that come within a time until now, and returns how many pass.
func (b *envoyBucket) decide(now clock.Instant, n float64, elapsed time.Duration) (passed float64) {
	if b.assigned && b.expiresAt <= now {
		b.assigned = false // and no fallback: no_assignment_behavior, by default all pass
	}
	passed = n
	if b.assigned && !math.IsInf(b.is.rate, 1) {
		perSecond := 0.0
		if b.is.interval > 0 {
			perSecond = float64(b.is.tokens) / float64(b.is.interval)
		}
		available := b.tokens + perSecond*elapsed.Seconds()
		passed = min(n, math.Floor(available))
		b.tokens = min(float64(b.is.maxTokens), available-passed)
	}
	b.allowed += passed
	b.denied += n - passed
	return passed
}

// assign takes an assignment. An equal one only renews.
func (b *envoyBucket) assign(now clock.Instant, a assignment, ttl time.Duration) {
	b.expiresAt = now.Add(ttl.Truncate(time.Second))
	// Equality does not compare the seconds of the interval.
	same := a.maxTokens == b.is.maxTokens && a.tokens == b.is.tokens && (a.rate == 0) == (b.is.rate == 0)
	if b.assigned && same {
		return
	}
	full := 1.0
	if b.newer && b.assigned && b.is.maxTokens > 0 {
		full = b.tokens / float64(b.is.maxTokens)
	}
	b.assigned, b.is, b.tokens = true, a, full*float64(a.maxTokens)
}

// report builds a report, which resets the counters whether it can be sent or not. The time is in
// whole seconds.
func (b *envoyBucket) report(now clock.Instant) (requests float64, elapsed time.Duration) {
	requests, elapsed = b.allowed+b.denied, now.Sub(b.reportedAt).Truncate(time.Second)
	b.allowed, b.denied, b.reportedAt = 0, 0, now
	return requests, elapsed
}

// dataPlane is an Envoy with one bucket.
type dataPlane struct {
	envoyBucket
	id     map[string]string
	peer   string
	known  bool // the bucket, which is made by the first request
	next   clock.Instant
	stream *quotaStream // nil while there is none
	demand float64      // requests per second
}

// quotaWorld is data planes and one server, on a virtual clock.
type quotaWorld struct {
	now    clock.Instant
	random *rand.Rand
	every  time.Duration // reports
	planes []*dataPlane
	server *quotas // nil while there is none
	make   func(now clock.Instant) *quotas

	messages int
	seconds  []float64 // what passed in each
}

const slot = 10 * time.Millisecond

// newQuotaWorld returns data planes of which a tenth has 80 % of the demand.
func newQuotaWorld(count int, every time.Duration, newer bool, limit, demand float64) *quotaWorld {
	w := &quotaWorld{now: clock.Instant(1000 * time.Second), every: every, random: rand.New(rand.NewPCG(1, 2))}
	w.make = func(now clock.Instant) *quotas {
		options := RLQSOptions{ReportInterval: every}
		options.setDefaults()
		return newQuotas(options, now, func(string, map[string]string, clock.Instant) *quotaLimit {
			return &quotaLimit{own: limit, burst: limit}
		})
	}
	w.server = w.make(w.now)
	for i := range count {
		p := &dataPlane{
			envoyBucket: envoyBucket{newer: newer}, id: map[string]string{"resource": "orders"}, peer: string(rune('a' + i)),
			next: w.now.Add(time.Duration(w.random.Int64N(int64(every)))),
		}
		w.planes = append(w.planes, p)
	}
	w.skew(demand, 0)
	return w
}

// skew gives a tenth of the data planes, from one on, 80 % of the demand.
func (w *quotaWorld) skew(demand float64, from int) {
	n := len(w.planes)
	hot := max(1, n/10)
	for i := range w.planes {
		p := w.planes[(from+i)%n]
		if p.demand = 0.2 * demand / float64(n-hot); i < hot {
			p.demand = 0.8 * demand / float64(hot)
		}
	}
}

// run runs for so many seconds.
func (w *quotaWorld) run(seconds int) {
	for range seconds {
		passed := 0.0
		for range time.Second / slot {
			w.now = w.now.Add(slot)
			for _, p := range w.planes {
				passed += w.step(p)
			}
			if time.Duration(w.now)%divideInterval == 0 && w.server != nil {
				w.divide()
			}
		}
		w.seconds = append(w.seconds, passed)
	}
}

// step has the requests of a slot come to a data plane, and returns how many pass.
func (w *quotaWorld) step(p *dataPlane) (passed float64) {
	n := w.poisson(p.demand * slot.Seconds())
	passed = p.decide(w.now, n, slot)
	if n > 0 && !p.known {
		p.known = true
		w.send(p, 1, 0)
		p.allowed, p.denied, p.reportedAt = p.allowed-1, 0, w.now
	}
	if w.now >= p.next {
		p.next = p.next.Add(w.every)
		if p.known {
			requests, elapsed := p.report(w.now)
			w.send(p, requests, elapsed)
		}
	}
	return passed
}

// poisson returns how many requests come that are so many in the mean.
func (w *quotaWorld) poisson(mean float64) float64 {
	if mean > 30 {
		return math.Max(0, math.Round(mean+w.random.NormFloat64()*math.Sqrt(mean)))
	}
	n := 0.0
	for p := w.random.Float64(); p > math.Exp(-mean); p *= w.random.Float64() {
		n++
	}
	return n
}

// send sends a report, by a new stream if there is none.
func (w *quotaWorld) send(p *dataPlane, requests float64, elapsed time.Duration) {
	if w.server == nil {
		return
	}
	if p.stream == nil {
		p.stream = newQuotaStream("shop", p.peer, make(chan struct{}, 1))
	}
	w.messages++
	w.server.report(p.stream, w.now, []quotaUsage{{p.id, requests, elapsed}}, 0)
}

func (w *quotaWorld) divide() {
	w.server.step(w.now)
	for _, p := range w.planes {
		w.deliver(p)
	}
}

// deliver has a data plane do what the server has sent.
func (w *quotaWorld) deliver(p *dataPlane) {
	if p.stream == nil {
		return
	}
	for actions := w.server.take(p.stream, nil); len(actions) > 0; actions = w.server.take(p.stream, nil) {
		w.messages++
		for _, a := range actions {
			if a.abandon {
				p.known, p.assigned = false, false
			} else {
				p.assign(w.now, a.assignment, a.ttl)
			}
		}
	}
}

// kill ends the server, as a signal does.
func (w *quotaWorld) kill() {
	w.server = nil
	for _, p := range w.planes {
		p.stream = nil
	}
}

// start starts another server.
func (w *quotaWorld) start() { w.server = w.make(w.now) }

// parts returns what passed in the seconds from one on, of what could: in all, in the least and
// in the worst of them.
func (w *quotaWorld) parts(from int, could float64) (all, least, worst float64) {
	least = math.Inf(1)
	for _, passed := range w.seconds[from:] {
		all += passed / could / float64(len(w.seconds)-from)
		least, worst = min(least, passed/could), max(worst, passed/could)
	}
	return all, least, worst
}
