package share_test

import (
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/share"
)

// step is the step of a simulated fleet.
const step = time.Millisecond

// simulation is a fleet on a clock of its own, whose instances share one limit by demand.
type simulation struct {
	random     *rand.Rand
	terms      fleet.Terms
	now        clock.Instant
	instances  []*simulated
	known      map[string]*entry // what the backend knows
	flights    []flight
	network    network
	restarts   int           // of the backend
	knownSince clock.Instant // when the backend lost something, or an instance left

	calls, passed int64
	recent        []int64 // tokens passed, by step
	counted       int64   // of passed, in recent
	total         int64   // of the last window
	peak          int64   // the greatest total
	alignedPeak   int64   // of a window aligned to tenths
	most          float64 // the greatest sum of what all may use, as a fraction of the limit
}

// network is what happens to announcements.
type network struct {
	latency   time.Duration // at most, one way
	lost      float64       // fraction of the requests, and of the answers
	duplicate float64       // fraction of the requests that arrive again, within a second
	down      bool
}

// entry is what a backend has of an instance.
type entry struct {
	instance fleet.Instance
	sent     clock.Instant
	ends     clock.Instant
}

// flight is a message under way.
type flight struct {
	at      clock.Instant
	arrives func()
}

// simulated is an instance with a sliding window of its own.
type simulated struct {
	*share.Share
	id          string
	perSecond   float64 // demand
	gone        bool
	cut         bool // off from the network
	announcesAt clock.Instant
	failures    int
	count       int // of instances last known

	bucket bucket
	window [10]int64 // what passed, by the tenth
	sum    int64
	tenth  int64
}

func simulate(terms fleet.Terms, seed uint64) *simulation {
	terms.Key = "flow/partner"
	return &simulation{
		random: rand.New(rand.NewPCG(seed, 1)), terms: terms, now: 1, known: make(map[string]*entry),
		network: network{latency: 5 * time.Millisecond}, recent: make([]int64, terms.Window/step),
	}
}

func (f *simulation) join(perSecond float64) *simulated {
	member := sharing.NewMember(fleet.Config{Manual: true}, clock.NewVirtual(time.Unix(0, 0)), slog.New(slog.DiscardHandler), 1)
	i := &simulated{
		Share: member.NewShare(f.terms, fleet.OutageLast, f.now), id: strconv.Itoa(len(f.instances)),
		perSecond: perSecond, announcesAt: f.now.Add(f.upTo(50 * time.Millisecond)),
	}
	f.instances = append(f.instances, i)
	return i
}

// begins has an instance that has been in the fleet for a while begin with the limit.
func (f *simulation) begins(perSecond float64) *simulated {
	i := f.join(perSecond)
	f.known[i.id] = &entry{instance: fleet.Instance{ID: i.id}, ends: f.now.Add(fleet.AnnounceLife)}
	i.Begin(f.now, f.knownSince, len(f.known))
	i.announcesAt = f.now
	return i
}

func (f *simulation) leave(i *simulated) {
	i.gone = true
	delete(f.known, i.id)
	f.knownSince = max(f.knownSince, f.now)
}

// restart restarts the backend without its data. What is under way to it is lost too.
func (f *simulation) restart() {
	clear(f.known)
	f.restarts++
	f.knownSince = max(f.knownSince, f.now)
}

// run runs the fleet, and returns which fraction of the limit passed.
func (f *simulation) run(d time.Duration) float64 {
	before := f.passed
	for end := f.now.Add(d); f.now < end; f.now = f.now.Add(step) {
		f.deliver()
		for _, i := range f.instances {
			if i.gone {
				continue
			}
			if f.now >= i.announcesAt {
				f.announce(i)
			}
			f.call(i)
		}
		f.countTick()
	}
	return float64(f.passed-before) / d.Seconds() / f.terms.PerSecond()
}

// call makes the calls of a step, at random.
func (f *simulation) call(i *simulated) {
	for at := f.random.ExpFloat64(); at < i.perSecond*step.Seconds(); at += f.random.ExpFloat64() {
		f.calls++
		passes := i.take(f.now, &f.terms)
		i.Count(f.now, 1, passes)
		if passes {
			f.passed++
		}
	}
}

// take decides on a call by the window of the instance, or by its bucket.
func (i *simulated) take(now clock.Instant, terms *fleet.Terms) bool {
	if terms.Buckets == 0 {
		return i.bucket.take(now, i.Limit()/terms.Window.Seconds(), terms.Burst*i.Limit()/terms.Limit)
	}
	for tenth := int64(now) / int64(terms.Window/10); i.tenth < tenth; {
		i.tenth = max(i.tenth+1, tenth-10)
		oldest := &i.window[i.tenth%10]
		i.sum -= *oldest
		*oldest = 0
	}
	// Of fractional limits, the fraction passes as one token every few windows.
	limit, k := i.Limit(), float64(i.tenth/10)
	if float64(i.sum+1) > math.Floor(limit*(k+1))-math.Floor(limit*k) {
		return false
	}
	i.window[i.tenth%10]++
	i.sum++
	return true
}

// bucket is a token bucket that begins empty and holds at least a token.
type bucket struct {
	tokens float64
	at     clock.Instant
}

func (b *bucket) take(now clock.Instant, perSecond, burst float64) bool {
	b.tokens = min(b.tokens+now.Sub(b.at).Seconds()*perSecond, max(1, burst))
	b.at = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// countTick counts what all have passed in the last window, from outside.
func (f *simulation) countTick() {
	slot := &f.recent[int64(f.now)/int64(step)%int64(len(f.recent))]
	f.total += f.passed - f.counted - *slot
	*slot = f.passed - f.counted
	f.counted = f.passed
	f.peak, f.most = max(f.peak, f.total), max(f.most, f.grants())
	if tenth := int64(f.terms.Window / 10); int64(f.now+clock.Instant(step))%tenth < int64(step) {
		f.alignedPeak = max(f.alignedPeak, f.total)
	}
}

// worst returns the greatest total of any window since it was called last, and of any window
// that is aligned to tenths, as fractions of the limit.
func (f *simulation) worst() (anyWindow, aligned float64) {
	defer func() { f.peak, f.alignedPeak = 0, 0 }()
	return float64(f.peak) / f.terms.Limit, float64(f.alignedPeak) / f.terms.Limit
}

// grants returns which fraction of the limit all instances have been granted.
func (f *simulation) grants() (sum float64) {
	for _, i := range f.instances {
		if !i.gone {
			sum += i.Granted()
		}
	}
	return sum
}

func (f *simulation) upTo(d time.Duration) time.Duration {
	return time.Duration(f.random.Int64N(int64(d) + 1))
}

func (f *simulation) send(after time.Duration, arrives func()) {
	f.flights = append(f.flights, flight{f.now.Add(after), arrives})
}

func (f *simulation) deliver() {
	slices.SortStableFunc(f.flights, func(a, b flight) int { return int(a.at - b.at) })
	for len(f.flights) > 0 && f.flights[0].at <= f.now {
		next := f.flights[0]
		f.flights = f.flights[1:]
		next.arrives()
	}
}

// announce sends what an instance announces, and its answer back, if both arrive.
func (f *simulation) announce(i *simulated) {
	sent := f.now
	self := fleet.Instance{ID: i.id, Limits: []fleet.Use{i.Use(f.now)}}
	pending := true
	late := func() {
		if pending && !i.gone {
			pending = false
			if i.failures++; i.failures >= 2 {
				i.Lost(f.now)
			}
			i.announcesAt = f.now.Add(f.upTo(200 * time.Millisecond))
		}
	}
	answer := func(known fleet.Fleet) {
		if pending && !i.gone {
			pending, i.failures, i.count = false, 0, known.Count
			i.announcesAt = f.now.Add(i.Divide(f.now, i.id, known))
		}
	}
	i.announcesAt = math.MaxInt64
	f.send(exchange.DefaultTimeout, late)
	if f.random.Float64() < f.network.lost {
		return
	}
	restarts := f.restarts
	request := func() {
		if f.restarts > restarts {
			return
		}
		if known, answers := f.receive(i, sent, self); answers && f.random.Float64() >= f.network.lost {
			f.send(f.upTo(f.network.latency), func() { answer(known) })
		}
	}
	f.send(f.upTo(f.network.latency), request)
	if f.random.Float64() < f.network.duplicate {
		f.send(f.upTo(time.Second), request)
	}
}

// receive has the backend take an announcement. One that a later one has overtaken has no effect.
func (f *simulation) receive(i *simulated, sent clock.Instant, self fleet.Instance) (known fleet.Fleet, answers bool) {
	if f.network.down || i.cut || i.gone {
		return known, false
	}
	e := f.known[i.id]
	known.IsNew = e == nil || e.ends <= f.now
	if e == nil || e.sent <= sent {
		f.known[i.id] = &entry{instance: self, sent: sent, ends: f.now.Add(fleet.AnnounceLife)}
	}
	for _, id := range slices.Sorted(maps.Keys(f.known)) {
		if e := f.known[id]; e.ends <= f.now {
			delete(f.known, id)
		} else {
			known.Instances = append(known.Instances, e.instance)
		}
	}
	known.Count = len(known.Instances)
	return known, true
}
