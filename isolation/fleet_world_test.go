package isolation_test

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
)

// world is a fleet on a virtual clock: instances whose calls come at random, a network, a store that
// can fail, and processes that can be paused. The same seed gives the same run. It counts from
// outside how many calls are under way.
type world struct {
	t      *testing.T
	clock  *clock.Virtual
	store  *memory.Store
	random *rand.Rand
	events worldEvents
	seq    int

	roundTrip time.Duration
	loss      float64 // of answers
	isDown    bool    // connections are refused
	isSilent  bool    // nothing is told of grants
	expected  int     // instances, as their configuration says; 0 if it does not

	rule      isolation.Rule
	service   time.Duration // of a call
	instances []*member

	underWay, most int
	busy           time.Duration // the time of calls under way, all together
	counted        clock.Instant
	requests       int
}

// member is one instance.
type member struct {
	*world
	name     string
	member   *sharing.Member
	limiter  limiter
	rate     float64 // calls a second
	isCut    bool    // from the store
	isPaused bool
	isKilled bool
	frozen   []func() // what happens when it goes on
	wakeAt   clock.Instant
	passes   int
	refused  int
	underWay int
}

type worldEvent struct {
	at  clock.Instant
	seq int
	do  func()
}

type worldEvents []worldEvent

func (e worldEvents) Len() int { return len(e) }
func (e worldEvents) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[j].at), cmp.Compare(e[i].seq, e[j].seq)) < 0
}
func (e worldEvents) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *worldEvents) Push(x any)   { *e = append(*e, x.(worldEvent)) }
func (e *worldEvents) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

func newWorld(t *testing.T, r isolation.Rule) *world {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	c := clock.NewVirtual(epoch.Time())
	r.Resource, r.Scope = "r", rule.ScopeFleet
	w := &world{
		t: t, clock: c, store: memory.New(c), random: rand.New(rand.NewPCG(1, 2)),
		roundTrip: 300 * time.Microsecond, rule: r, service: 20 * time.Millisecond, counted: c.Now(),
	}
	w.run(5 * time.Second) // the store is not young
	return w
}

func (w *world) now() clock.Instant { return w.clock.Now() }

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.events, worldEvent{w.now().Add(d), w.seq, do})
}

// join adds instances with so many calls a second each.
func (w *world) join(rates ...float64) {
	for _, rate := range rates {
		m := &member{world: w, name: "instance-" + strconv.Itoa(len(w.instances)), rate: rate, wakeAt: 1<<63 - 1}
		m.member = sharing.NewMember(fleet.Config{Manual: true, Instance: m.name, Instances: w.expected}, w.clock, slog.New(slog.DiscardHandler), w.random.Uint64())
		m.limiter = sound(w.t, w.rule).NewLimiter(rule.Env{Version: 1, Now: w.now(), Fleet: m.member}).(limiter)
		w.store.Listen(m.name, func(key string) {
			w.after(w.roundTrip/2, func() {
				if !w.isSilent {
					m.at(func() { m.member.PlacesGranted(key) })
				}
			})
		})
		w.instances = append(w.instances, m)
		m.plan()
		m.nextCall()
	}
}

// at does something in the process, when it goes on if it is paused, and not at all if it was killed.
func (m *member) at(do func()) {
	switch {
	case m.isKilled:
	case m.isPaused:
		m.frozen = append(m.frozen, func() { m.at(do) })
	default:
		do()
		m.plan()
	}
}

func (m *member) pause() { m.isPaused = true }

func (m *member) resume() {
	m.isPaused = false
	all := m.frozen
	m.frozen = nil
	for _, do := range all {
		do()
	}
	m.plan()
}

// kill ends the process with its calls.
func (m *member) kill() {
	m.count(-m.underWay)
	m.underWay = 0
	m.isKilled, m.rate = true, 0
}

func (m *member) nextCall() {
	if m.rate > 0 {
		m.after(time.Duration(m.random.ExpFloat64()/m.rate*1e9), func() { m.at(m.call); m.nextCall() })
	}
}

func (m *member) call() {
	c := rule.Call{Now: m.now(), Tokens: 1}
	ticket, decision := m.limiter.Acquire(c)
	if decision == rule.Wait {
		m.wait(c)
		return
	}
	m.decided(ticket, decision)
}

func (m *member) wait(c rule.Call) {
	var waiter rule.Waiter
	ended := false
	poll := func() {
		if ended || waiter == nil {
			return
		}
		if ticket, _, decision := waiter.Poll(m.now()); decision != rule.Wait {
			ended = true
			m.decided(ticket, decision)
		}
	}
	waiter, ticket, decision := m.limiter.Join(c, rule.Patience{
		Since: c.Now, Until: endless, Wake: func() { m.after(0, func() { m.at(poll) }) },
	})
	if decision != rule.Wait {
		m.decided(ticket, decision)
		return
	}
	m.after(m.rule.MaxWait, func() { m.at(poll) })
}

func (m *member) decided(ticket rule.Ticket, decision rule.Decision) {
	if decision != rule.Pass {
		m.refused++
		return
	}
	m.passes++
	m.count(1)
	m.underWay++
	start := m.now()
	m.after(time.Duration(float64(m.service)*(.5+m.random.Float64())), func() {
		m.at(func() {
			m.count(-1)
			m.underWay--
			m.limiter.Done(ticket, rule.Exit{Now: m.now(), Start: start})
		})
	})
}

// count notes that more or fewer calls are under way.
func (w *world) count(change int) {
	w.busy += time.Duration(w.underWay) * w.now().Sub(w.counted)
	w.counted = w.now()
	w.underWay += change
	w.most = max(w.most, w.underWay)
}

// plan has the member stepped when it is due.
func (m *member) plan() {
	due := max(m.now(), m.member.Due())
	if due >= m.wakeAt {
		return
	}
	m.wakeAt = due
	if due == 1<<63-1 {
		return
	}
	m.after(due.Sub(m.now()), func() {
		if m.wakeAt == due {
			m.wakeAt = 1<<63 - 1
			m.at(m.step)
		}
	})
}

func (m *member) step() {
	if m.member.Due() > m.now() {
		return
	}
	for _, batch := range m.member.Step(m.now()) {
		m.send(batch)
	}
}

var errRefused = errors.New("connection refused")

// send has a batch travel to the store, be made there, and its answer travel back.
func (m *member) send(batch *exchange.Batch) {
	w := m.world
	way := func() time.Duration { return time.Duration(float64(w.roundTrip) / 2 * (.8 + .4*w.random.Float64())) }
	w.after(way(), func() {
		w.requests += len(batch.Requests)
		if w.isDown || m.isCut {
			w.after(way(), func() { m.at(func() { m.member.Fail(m.now(), batch, errRefused) }) })
			return
		}
		err := batch.Send(context.Background(), w.store)
		if w.random.Float64() < w.loss {
			return
		}
		w.after(way(), func() {
			m.at(func() {
				if err != nil {
					m.member.Fail(m.now(), batch, err)
				} else {
					m.member.Deliver(m.now(), batch)
				}
			})
		})
	})
}

// run lets some time pass.
func (w *world) run(d time.Duration) {
	end := w.now().Add(d)
	same := 0
	for len(w.events) > 0 && w.events[0].at <= end {
		e := heap.Pop(&w.events).(worldEvent)
		if same++; e.at > w.now() {
			same = 0
		} else if same > 100_000 {
			panic("members are due for ever")
		}
		w.clock.Advance(e.at.Sub(w.now()))
		e.do()
	}
	w.clock.Advance(end.Sub(w.now()))
}

// measured is what happened in a time.
type measured struct {
	most     int     // calls under way at once
	used     float64 // of the limit
	requests float64 // a second and instance
	passes   []int   // by instance
}

// measure lets some time pass, and tells what happened.
func (w *world) measure(d time.Duration) measured {
	w.count(0)
	w.most, w.busy, w.requests = w.underWay, 0, 0
	for _, m := range w.instances {
		m.passes = 0
	}
	w.run(d)
	w.count(0)
	got := measured{
		most: w.most, used: w.busy.Seconds() / d.Seconds() / float64(w.rule.Limit),
		requests: float64(w.requests) / d.Seconds() / float64(len(w.instances)),
	}
	for _, m := range w.instances {
		got.passes = append(got.passes, m.passes)
	}
	return got
}

// rates returns the calls a second of n instances that want so many times the limit together, of which
// the first has a share.
func (w *world) rates(n int, times, first float64) []float64 {
	total := times * float64(w.rule.Limit) / w.service.Seconds()
	rates := make([]float64, n)
	for i := range rates {
		rates[i] = total * (1 - first) / float64(n-1)
	}
	rates[0] = total * first
	return rates
}

func outage(onOutage string) rule.Fleet {
	return rule.Fleet{OnOutage: fleet.OnOutage(onOutage)}
}

func ruleEnv(version uint64, m *member) rule.Env {
	return rule.Env{Version: version, Now: m.now(), Fleet: m.member}
}

// leased returns a limiter of the whole fleet that has leased places a second after the epoch.
func leased(t testing.TB) limiter {
	c := clock.NewVirtual(epoch.Time())
	store := memory.New(c)
	member := sharing.NewMember(fleet.Config{Manual: true, Instance: "one"}, c, slog.New(slog.DiscardHandler), 1)
	r := isolation.Rule{Resource: "r", Limit: 1000, Scope: rule.ScopeFleet}
	l := sound(t, r).NewLimiter(rule.Env{Version: 1, Now: c.Now(), Fleet: member}).(limiter)
	c.Advance(time.Second)
	for range 3 {
		for _, batch := range member.Step(c.Now()) {
			require.NoError(t, batch.Send(context.Background(), store))
			member.Deliver(c.Now(), batch)
		}
	}
	return l
}
