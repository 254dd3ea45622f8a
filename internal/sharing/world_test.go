package sharing_test

import (
	"container/heap"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/ask"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/lease"
)

// world is a fleet on a virtual clock: instances with a demand of their own, a network with
// latency, jitter and loss, and a store that can fail. The same seed gives the same run. It
// counts from outside what passes.
type world struct {
	clock  *clock.Virtual
	store  *memory.Store
	start  clock.Instant
	end    clock.Instant // of what runs
	random *rand.Rand
	events events
	seq    int

	roundTrip time.Duration
	jitter    float64 // of the round trip
	loss      float64 // share of the answers that are lost
	isDown    bool    // connections are refused
	isDeaf    bool    // requests have no answer, announcements have one
	refusal   error   // what the store says to all requests of limits
	dropsLate bool    // answers that come after the timeout are lost, as those of a client that gives up then
	isPaused  bool    // nothing is answered; what was sent is made when that ends
	expected  int     // instances, see [fleet.Config.Instances]
	paused    []func()

	log       logText
	instances []*instance
	exchanges int // batches with requests that reached the network
	requests  int
}

// instance is one member with a budget or an asker, and the calls that come there.
type instance struct {
	world  *world
	member *sharing.Member
	budget *lease.Budget
	asker  *ask.Asker
	isCut  bool // from the store
	rate   float64
	wakeAt clock.Instant // the earliest step that is planned
	passes []int32       // the millisecond of each
	calls  []int32
}

type event struct {
	at  clock.Instant
	seq int
	do  func()
	of  *instance // a call, if do is nil
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// skipLong leaves out a test of a world that takes seconds: it has one goroutine.
func skipLong(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
}

func newWorld(seed uint64, roundTrip time.Duration) *world {
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return &world{
		clock: c, store: memory.New(c), start: c.Now(), roundTrip: roundTrip, jitter: 0.2,
		random: rand.New(rand.NewPCG(seed, 1)),
	}
}

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.events, event{at: w.clock.Now().Add(d), seq: w.seq, do: do})
}

// join adds instances of a limit with so many calls per second each.
func (w *world) join(terms fleet.Terms, mode fleet.Mode, onOutage fleet.OnOutage, rates ...float64) {
	w.add(rates, func(i *instance) { i.budget = i.member.Budget(terms, mode, onOutage, w.clock.Now()) })
}

// joinAsking is join, of [fleet.ModeAsk].
func (w *world) joinAsking(terms fleet.Terms, operation fleet.Operation, onOutage fleet.OnOutage, rates ...float64) {
	w.add(rates, func(i *instance) { i.asker = i.member.Asker(terms, operation, onOutage) })
}

func (w *world) add(rates []float64, begin func(*instance)) {
	log := slog.New(slog.NewTextHandler(&w.log, nil))
	for _, rate := range rates {
		i := &instance{world: w, rate: rate, wakeAt: 1 << 62}
		i.member = sharing.NewMember(fleet.Config{Manual: true, Instances: w.expected}, w.clock, log, w.random.Uint64())
		begin(i)
		w.instances = append(w.instances, i)
		// Instances start within a second, as those of a deployment do.
		w.after(time.Duration(w.random.Int64N(int64(time.Second))), func() {
			i.plan()
			i.nextCall()
		})
	}
}

func (i *instance) nextCall() {
	if i.rate > 0 {
		w := i.world
		w.seq++
		gap := time.Duration(w.random.ExpFloat64() / i.rate * 1e9)
		heap.Push(&w.events, event{at: w.clock.Now().Add(gap), seq: w.seq, of: i})
	}
}

// demand sets the calls per second of the instance, from its next call on.
func (i *instance) demand(rate float64) {
	isQuiet := i.rate == 0
	if i.rate = rate; isQuiet {
		i.nextCall()
	}
}

func (i *instance) call(now clock.Instant) {
	i.calls = append(i.calls, i.millisecond())
	switch {
	case i.asker != nil:
		i.asker.Ask(now, 1, func(a ask.Answer) {
			if a.Allowed {
				i.passes = append(i.passes, i.millisecond())
			}
		})
	case i.budget.Take(now, 1):
		i.passes = append(i.passes, i.millisecond())
	}
	i.plan()
	i.nextCall()
}

// millisecond returns the present one.
func (i *instance) millisecond() int32 {
	return int32(i.world.clock.Now().Sub(i.world.start) / time.Millisecond)
}

// plan has the member stepped when it is due.
func (i *instance) plan() {
	now := i.world.clock.Now()
	due := max(now, i.member.Due())
	if due >= i.wakeAt || due == 1<<63-1 {
		return
	}
	i.wakeAt = due
	i.world.after(due.Sub(now), func() {
		if i.wakeAt == i.world.clock.Now() {
			i.step()
		}
	})
}

func (i *instance) step() {
	now := i.world.clock.Now()
	i.wakeAt = 1 << 62
	if i.member.Due() <= now {
		for _, batch := range i.member.Step(now) {
			i.send(batch)
		}
	}
	i.plan()
}

var errRefused = errors.New("connection refused")

// send has a batch travel to the store, be made there, and its answer travel back.
func (i *instance) send(batch *exchange.Batch) {
	w := i.world
	if len(batch.Requests) > 0 {
		w.exchanges++
		w.requests += len(batch.Requests)
	}
	way := func() time.Duration {
		return time.Duration(float64(w.roundTrip) / 2 * (1 + w.jitter*(2*w.random.Float64()-1)))
	}
	late := w.clock.Now().Add(exchange.DefaultTimeout)
	w.after(way(), func() {
		if w.isDown || i.isCut {
			w.after(way(), func() { i.member.Fail(w.clock.Now(), batch, errRefused); i.plan() })
			return
		}
		arrive := func() {
			if w.isDeaf && len(batch.Requests) > 0 {
				return
			}
			err := batch.Send(context.Background(), w.store)
			for r := range batch.Replies {
				if w.refusal != nil {
					batch.Replies[r] = fleet.Reply{Err: w.refusal}
				}
			}
			if w.random.Float64() < w.loss {
				return // the member notices
			}
			w.after(way(), func() {
				if w.dropsLate && w.clock.Now() > late {
					return
				}
				if err != nil {
					i.member.Fail(w.clock.Now(), batch, err)
				} else {
					i.member.Deliver(w.clock.Now(), batch)
				}
				i.plan()
			})
		}
		if w.isPaused {
			w.paused = append(w.paused, arrive)
			return
		}
		arrive()
	})
}

// resume ends a pause: the store makes what was sent to it meanwhile.
func (w *world) resume() {
	w.isPaused = false
	for _, arrive := range w.paused {
		arrive()
	}
	w.paused = nil
}

// run lets some time pass.
func (w *world) run(d time.Duration) {
	w.end = w.clock.Now().Add(d)
	last, same := w.clock.Now(), 0
	for len(w.events) > 0 && w.events[0].at <= w.end {
		e := heap.Pop(&w.events).(event)
		w.clock.Advance(e.at.Sub(w.clock.Now()))
		if same++; e.at > last {
			last, same = e.at, 0
		} else if same > 100_000 {
			panic("members are due for ever")
		}
		if e.do != nil {
			e.do()
		} else {
			e.of.call(e.at)
		}
	}
	w.clock.Advance(w.end.Sub(w.clock.Now()))
}

// total counts passes from one time to another, of all instances.
func (w *world) total(from, to time.Duration) (passes, calls int) {
	for _, i := range w.instances {
		passes += count(i.passes, from, to)
		calls += count(i.calls, from, to)
	}
	return passes, calls
}

// count returns how many of some milliseconds, which are in their order, are from one time to another.
func count(milliseconds []int32, from, to time.Duration) int {
	first, _ := slices.BinarySearch(milliseconds, int32(from/time.Millisecond))
	end, _ := slices.BinarySearch(milliseconds, int32(to/time.Millisecond))
	return end - first
}

// worst is the greatest number of passes in any time of a length that begins at a multiple of
// step, between two times.
func (w *world) worst(from, to, length, step time.Duration) int {
	var passes []int32
	for _, i := range w.instances {
		passes = append(passes, i.passes...)
	}
	slices.Sort(passes)
	worst := 0
	for begin := from; begin+length <= to; begin += step {
		worst = max(worst, count(passes, begin, begin+length))
	}
	return worst
}

// even and skewed return demands of n instances, which are total together: of skewed, one has
// nine tenths.
func even(n int, total float64) []float64 {
	rates := make([]float64, n)
	for i := range rates {
		rates[i] = total / float64(n)
	}
	return rates
}

func skewed(n int, total float64) []float64 {
	rates := even(n, total/10*float64(n)/float64(n-1))
	rates[0] = total * 0.9
	return rates
}

func bucketOf(limit float64) fleet.Terms {
	return fleet.Terms{Key: "flow/a", Limit: limit, Window: time.Second, Burst: limit / 10, Buckets: 10}
}
