package isolation_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
)

// stress runs a test in a bubble of its own: once, or for half a minute again and again,
// as make long does. In the bubble, goroutines run in parallel; timers fire when
// nothing else can run, and a wake-up that is lost is reported as a deadlock.
func stress(t *testing.T, test func(t *testing.T)) {
	t.Parallel()
	duration := longtest.Of(0, 30*time.Second)
	for start := time.Now(); ; {
		synctest.Test(t, test)
		if time.Since(start) >= duration || t.Failed() {
			return
		}
	}
}

// load is many goroutines that call under one rule, and their own count.
type load struct {
	t     *testing.T
	clock clock.Clock
	rule  atomic.Pointer[version]

	underWay atomic.Int64 // between passing and ending, as the callers know it
	epoch    atomic.Int64 // how often ceiling has changed
	ceiling  atomic.Int64 // that holds for underWay now

	passed, waited, refused, released, cancelled, checked atomic.Int64
}

// version is a version of the rule for calls to load at once.
type version struct {
	limiter
	number uint64
	rule   isolation.Rule
	former limiter // the version before it; nil if there is none
}

func newLoad(t *testing.T, r isolation.Rule) *load {
	d := &load{t: t, clock: clock.System()}
	d.rule.Store(&version{newLimiter(t, r), 1, r, nil})
	d.ceiling.Store(int64(r.Limit))
	return d
}

// call makes one call, which gives up waiting after its patience, 0 for never. It
// returns what came of it.
func (d *load) call(patience time.Duration, work func()) rule.Decision {
	return d.callBy(d.rule.Load().limiter, rule.PriorityNormal, patience, work)
}

// callBy calls with a priority, by a version that need not be the present one.
func (d *load) callBy(by limiter, p rule.Priority, patience time.Duration, work func()) rule.Decision {
	epoch := d.epoch.Load()
	call := rule.Call{Now: d.clock.Now(), Tokens: 1}
	call.SetCaller(p, false)
	ticket, decision := by.(optional.LateReader).AcquireUnread(call)
	call.Attribute = rule.Int(rand.Int64N(6) * rand.Int64N(6)) // a tenant, for rules with shares
	if decision == optional.NeedsAttribute {
		ticket, decision = by.Acquire(call)
	}
	if decision == rule.Wait {
		wake := make(chan struct{}, 1)
		waiter, joinedTicket, joined := by.Join(call, rule.Patience{Since: call.Now, Until: endless, Wake: func() {
			select {
			case wake <- struct{}{}:
			default:
			}
		}})
		if ticket, decision = joinedTicket, joined; joined == rule.Wait {
			d.waited.Add(1)
			ticket, decision = d.wait(waiter, wake, patience)
		}
	}
	switch decision {
	case rule.Pass:
		d.pass(epoch, work)
		by.Done(ticket, rule.Exit{Now: d.clock.Now(), Start: call.Now})
	case rule.Block:
		d.refused.Add(1)
	case rule.Stale:
		d.released.Add(1)
	}
	return decision
}

// pass counts the call as under way while it works.
func (d *load) pass(epoch int64, work func()) {
	underWay, ceiling := d.underWay.Add(1), d.ceiling.Load()
	if epoch == d.epoch.Load() { // else another ceiling may have held in between
		d.checked.Add(1)
		if underWay > ceiling {
			d.t.Errorf("%d calls under way, %d may be", underWay, ceiling)
		}
	}
	d.passed.Add(1)
	work()
	d.underWay.Add(-1)
}

func (d *load) wait(w rule.Waiter, wake <-chan struct{}, patience time.Duration) (rule.Ticket, rule.Decision) {
	var gaveUp <-chan time.Time
	if patience > 0 {
		gaveUp = time.After(patience)
	}
	for {
		ticket, remaining, decision := w.Poll(d.clock.Now())
		if decision != rule.Wait {
			return ticket, decision
		}
		over := time.NewTimer(remaining)
		select {
		case <-wake:
		case <-over.C:
		case <-gaveUp:
			w.Leave(d.clock.Now())
			d.cancelled.Add(1)
			over.Stop()
			return 0, rule.Wait
		}
		over.Stop()
	}
}

// check looks at the limiter from outside.
func (d *load) check() {
	g := gaugesOf(d.rule.Load(), d.clock.Now())
	if g.waiting > 0 && g.inFlight < g.limit {
		d.t.Errorf("%d calls wait, but only %d of %d places are taken", g.waiting, g.inFlight, g.limit)
	}
}

// finish checks that nothing is left over.
func (d *load) finish() {
	assert.Zero(d.t, d.underWay.Load())
	g := gaugesOf(d.rule.Load(), d.clock.Now())
	assert.Equal(d.t, gauges{0, 0, g.highest, g.limit}, g)
	assert.True(d.t, d.rule.Load().Idle(d.clock.Now()))
}

func anyPriority(random *rand.Rand) rule.Priority { return rule.Priority(random.IntN(5) - 2) }

// spin is work that lets other goroutines run.
func spin() { runtime.Gosched() }

func TestLimitHoldsAndNoPlaceIsIdleWhateverTheInterleaving(t *testing.T) {
	stress(t, func(t *testing.T) {
		const callers, calls = 64, 1000
		d := newLoad(t, isolation.Rule{Resource: "r", Limit: 11, MaxWait: time.Hour})
		start := time.Now()
		var calling sync.WaitGroup
		for range callers {
			calling.Go(func() {
				random := rand.New(rand.NewPCG(rand.Uint64(), 0))
				for i := range calls {
					work := spin
					if random.IntN(20) == 0 {
						work = func() { time.Sleep(time.Duration(random.IntN(1000))) }
					}
					if decision := d.call(0, work); decision != rule.Pass {
						t.Errorf("all calls pass in the end, but one got %s", name(decision))
					}
					if i%10 == 0 {
						d.check()
					}
				}
			})
		}
		calling.Wait()
		d.finish()
		assert.EqualValues(t, callers*calls, d.passed.Load())
		assert.EqualValues(t, callers*calls, d.checked.Load())
		assert.Positive(t, d.waited.Load())
		assert.Less(t, time.Since(start), time.Hour, "nobody has waited for a wake-up that was lost")
	})
}

// Every call gets a place or is refused, as the callers count, whoever makes way for whom.
func TestSharesKeepTheLimitAndLoseNoCall(t *testing.T) {
	stress(t, func(t *testing.T) {
		const callers, calls = 64, 500
		r := isolation.Rule{Resource: "r", Limit: 5, MaxWait: time.Hour, MaxQueue: 20}
		shareFairly(&r, rand.New(rand.NewPCG(rand.Uint64(), 0)))
		d := newLoad(t, r)
		var calling sync.WaitGroup
		for range callers {
			calling.Go(func() {
				random := rand.New(rand.NewPCG(rand.Uint64(), 0))
				for i := range calls {
					patience := time.Duration(0)
					if random.IntN(10) == 0 {
						patience = time.Duration(1 + random.IntN(1000))
					}
					d.callBy(d.rule.Load().limiter, anyPriority(random), patience, func() { time.Sleep(time.Duration(random.IntN(1000))) })
					if i%10 == 0 {
						d.check()
					}
				}
			})
		}
		calling.Wait()
		d.finish()
		assert.EqualValues(t, callers*calls, d.passed.Load()+d.refused.Load()+d.cancelled.Load())
		assert.Positive(t, d.waited.Load())
		assert.Positive(t, d.refused.Load())
	})
}

func TestLimitHoldsWithoutAQueue(t *testing.T) {
	stress(t, func(t *testing.T) {
		const callers, calls = 64, 3000
		d := newLoad(t, isolation.Rule{Resource: "r", Limit: 3})
		var calling sync.WaitGroup
		for range callers {
			calling.Go(func() {
				for range calls {
					d.call(0, spin)
				}
			})
		}
		calling.Wait()
		d.finish()
		assert.EqualValues(t, callers*calls, d.passed.Load()+d.refused.Load())
		assert.Positive(t, d.refused.Load())
	})
}

// meet lets goroutines go on when all have come, at nearly the same instant.
func meet(here *atomic.Int64, all int64) {
	here.Add(1)
	for spins := 0; here.Load() < all; spins++ {
		if spins%1000 == 999 {
			runtime.Gosched() // the others may have no processor
		}
	}
}

func TestCallsAtTheSameInstantNeverShareTheLastPlace(t *testing.T) {
	t.Parallel()
	const callers, rounds = 2, 5000
	l := newLimiter(t, isolation.Rule{Resource: "r", Limit: 1})
	call := rule.Call{Now: epoch, Tokens: 1}
	var passed, before, after, end atomic.Int64
	var calling sync.WaitGroup
	for caller := range callers {
		calling.Go(func() {
			for round := range int64(rounds) {
				meet(&before, callers*(round+1))
				for range round * int64(caller) % 64 { // the last to come is the first to go on
					before.Load()
				}
				ticket, decision := l.Acquire(call)
				if decision == rule.Pass {
					passed.Add(1)
				}
				meet(&after, callers*(round+1))
				if passed.Load() != round+1 {
					t.Errorf("round %d: %d calls have passed in all", round, passed.Load())
					return // the other caller does so, too
				}
				meet(&end, callers*(round+1))
				if decision == rule.Pass {
					l.Done(ticket, rule.Exit{Now: epoch})
				}
			}
		})
	}
	calling.Wait()
}

func TestStormOfCancellationsLosesNoPlace(t *testing.T) {
	for _, order := range []isolation.Order{isolation.FIFO, isolation.LIFO} {
		t.Run(string(order), func(t *testing.T) {
			stress(t, func(t *testing.T) {
				const callers, calls = 64, 300
				d := newLoad(t, isolation.Rule{Resource: "r", Limit: 2, MaxWait: time.Hour, MaxQueue: 50, Order: order})
				var calling sync.WaitGroup
				for range callers {
					calling.Go(func() {
						random := rand.New(rand.NewPCG(rand.Uint64(), 0))
						for i := range calls {
							patience := time.Duration(1 + random.IntN(3000))
							work := func() { time.Sleep(time.Duration(random.IntN(200))) }
							d.callBy(d.rule.Load().limiter, anyPriority(random), patience, work)
							if i%10 == 0 {
								d.check()
							}
						}
					})
				}
				calling.Wait()
				d.finish()
				assert.EqualValues(t, callers*calls, d.passed.Load()+d.refused.Load()+d.cancelled.Load())
				assert.Positive(t, d.passed.Load())
				assert.Positive(t, d.cancelled.Load())
			})
		})
	}
}

// reload goes over to another version of the rule, and lowers the ceiling as soon as
// the calls under way are within the new limit.
func (d *load) reload(r isolation.Rule, retire bool) {
	present := d.rule.Load()
	d.allow(max(present.rule.Limit, r.Limit, int(d.ceiling.Load())))
	if retire {
		present.Retire(d.clock.Now())
	}
	next := &version{adopt(d.t, present.limiter, r, present.number+1), present.number + 1, r, present.limiter}
	if next.number%2 == 0 {
		next.Activate(d.clock.Now())
	}
	d.rule.Store(next)
	next.Activate(d.clock.Now())
	for range 10_000 { // calls come to an end
		if gaugesOf(next, d.clock.Now()).inFlight <= r.Limit {
			d.allow(r.Limit)
			return
		}
		runtime.Gosched()
	}
}

func (d *load) allow(calls int) {
	d.epoch.Add(1)
	d.ceiling.Store(int64(calls))
	d.epoch.Add(1)
}

// shareFairly gives tenants shares, some of them greater ones.
func shareFairly(r *isolation.Rule, random *rand.Rand) {
	r.FairBy = rule.StringsOf("tenant")
	r.WeightBy = []isolation.WeightBy{isolation.ByTime, isolation.ByCalls}[random.IntN(2)]
	key := rule.Int(random.Int64N(6))
	r.Weights = rule.NumberMapOf(rule.NumberEntry{Key: key, Value: float64(1 + random.IntN(3))})
}

func TestReloadsUnderLoadKeepEveryLimit(t *testing.T) {
	stress(t, func(t *testing.T) {
		const callers, reloads = 32, 300
		r := isolation.Rule{Resource: "r", Limit: 5, MaxWait: time.Hour, MaxQueue: 100}
		d := newLoad(t, r)
		var calling sync.WaitGroup
		var over atomic.Bool
		defer over.Store(true)
		for range callers {
			calling.Go(func() {
				random := rand.New(rand.NewPCG(rand.Uint64(), 0))
				for !over.Load() {
					present := d.rule.Load()
					d.callBy(present.limiter, anyPriority(random), time.Duration(1+random.IntN(1000)), spin)
					if present.former != nil {
						d.callBy(present.former, anyPriority(random), 1, spin)
					}
					d.check()
					runtime.Gosched() // else refused calls keep the others from running
				}
			})
		}
		random := rand.New(rand.NewPCG(rand.Uint64(), 0))
		for i := range reloads {
			r.Limit = random.IntN(8)
			r.MaxQueue = 1 + random.IntN(40)
			r.Order = []isolation.Order{isolation.FIFO, isolation.LIFO}[random.IntN(2)]
			r.FairBy, r.WeightBy, r.Weights = rule.Strings{}, "", rule.NumberMap{}
			if r.Order == isolation.FIFO && random.IntN(3) > 0 {
				shareFairly(&r, random)
			}
			r.MaxWait = time.Duration(1+random.IntN(1000)) * time.Millisecond
			r.Origin = []string{"", "", "mobile"}[random.IntN(3)]
			d.reload(r, i%7 == 0)
			for range random.IntN(50) {
				runtime.Gosched()
			}
		}
		over.Store(true)
		calling.Wait()
		d.finish()
		assert.Positive(t, d.passed.Load())
		assert.Positive(t, d.checked.Load())
		assert.Positive(t, d.released.Load())
	})
}

// While calls of two priorities wait all the time, one place of eight goes to the lower one.
func TestLowerPriorityGetsOneOfEightPlaces(t *testing.T) {
	for _, order := range []isolation.Order{isolation.FIFO, isolation.LIFO} {
		t.Run(string(order), func(t *testing.T) {
			stress(t, func(t *testing.T) {
				const limit, callers, seconds = 5, 40, 5
				d := newLoad(t, isolation.Rule{Resource: "r", Limit: limit, MaxWait: time.Hour, Order: order})
				var over atomic.Bool
				passed := map[rule.Priority]*atomic.Int64{rule.PriorityHigh: {}, rule.PriorityLow: {}}
				var calling sync.WaitGroup
				for p, count := range passed {
					for range callers {
						calling.Go(func() {
							for !over.Load() {
								d.callBy(d.rule.Load().limiter, p, 0, func() { time.Sleep(time.Millisecond) })
								count.Add(1)
							}
						})
					}
				}
				time.Sleep(seconds * time.Second)
				high, low := passed[rule.PriorityHigh].Load(), passed[rule.PriorityLow].Load()
				over.Store(true)
				calling.Wait()
				d.finish()
				assert.InDelta(t, seconds*1000*limit, high+low, limit, "all places were taken all the time")
				assert.InDelta(t, (high+low)/8, low, 2*limit)
			})
		})
	}
}

// A full queue that calls of all priorities crowd into loses no call and no place, and
// refuses a call of the highest priority only for others of that.
func TestCrowdedQueueServesTheMostImportant(t *testing.T) {
	stress(t, func(t *testing.T) {
		const critical, others, calls = 10, 100, 100
		d := newLoad(t, isolation.Rule{Resource: "r", Limit: 2, MaxWait: time.Hour, MaxQueue: critical})
		var calling sync.WaitGroup
		for range critical {
			calling.Go(func() {
				for range calls {
					got := d.callBy(d.rule.Load().limiter, rule.PriorityCritical, 0, func() { time.Sleep(1000) })
					assert.Equal(t, rule.Pass, got, "there is space in the queue for all critical calls")
				}
			})
		}
		for i := range others {
			calling.Go(func() {
				random := rand.New(rand.NewPCG(uint64(i), 0))
				for range calls {
					p := rule.Priority(random.IntN(4) - 2)
					patience := time.Duration(random.IntN(2) * 5000)
					d.callBy(d.rule.Load().limiter, p, patience, func() { time.Sleep(time.Duration(random.IntN(200))) })
					d.check()
					time.Sleep(time.Duration(random.IntN(3000)))
				}
			})
		}
		calling.Wait()
		d.finish()
		assert.EqualValues(t, (critical+others)*calls, d.passed.Load()+d.refused.Load()+d.cancelled.Load())
		assert.Positive(t, d.refused.Load())
		assert.Positive(t, d.cancelled.Load())
	})
}

func TestTenThousandWaitersPassInOrder(t *testing.T) {
	t.Parallel()
	const waiters = 10_000
	l := newLimiter(t, isolation.Rule{Resource: "r", Limit: 1, MaxWait: time.Hour, MaxQueue: waiters})
	call := rule.Call{Now: epoch, Tokens: 1}
	l.Acquire(call)
	var woken []int
	queue := make([]rule.Waiter, waiters)
	for i := range queue {
		queue[i], _, _ = l.Join(call, patience(func() { woken = append(woken, i) }))
	}
	_, decision := l.Acquire(call)
	require.Equal(t, rule.Block, decision, "the queue is full")
	for i, w := range queue {
		l.Done(0, rule.Exit{Now: epoch})
		_, _, decision := w.Poll(epoch)
		require.Equal(t, rule.Pass, decision)
		require.Len(t, woken, i+1, "an end wakes one waiter")
	}
	assert.True(t, slices.IsSorted(woken))
}

func TestTenThousandGoroutinesWaitPassAndGiveUp(t *testing.T) {
	stress(t, func(t *testing.T) {
		const callers = 10_000
		d := newLoad(t, isolation.Rule{Resource: "r", Limit: 7, MaxWait: time.Hour, MaxQueue: callers})
		start := time.Now()
		var calling sync.WaitGroup
		for i := range callers {
			calling.Go(func() {
				patience := time.Duration(0)
				if i%3 == 0 {
					patience = time.Duration(i) * time.Microsecond
				}
				d.call(patience, func() { time.Sleep(time.Millisecond) })
			})
		}
		calling.Wait()
		d.finish()
		assert.EqualValues(t, callers, d.passed.Load()+d.cancelled.Load())
		assert.Positive(t, d.cancelled.Load())
		batches := (d.passed.Load() + 6) / 7
		assert.Equal(t, time.Duration(batches)*time.Millisecond, time.Since(start), "all places were taken all the time")
	})
}

func TestRetiringReleasesAllWhoWait(t *testing.T) {
	stress(t, func(t *testing.T) {
		const callers = 1000
		d := newLoad(t, isolation.Rule{Resource: "r", Limit: 4, MaxWait: time.Hour})
		var calling sync.WaitGroup
		for range callers {
			calling.Go(func() { d.call(0, func() { time.Sleep(time.Second) }) })
		}
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		d.rule.Load().Retire(d.clock.Now())
		calling.Wait()
		d.finish()
		assert.EqualValues(t, 8, d.passed.Load())
		assert.EqualValues(t, callers-8, d.released.Load())
	})
}
