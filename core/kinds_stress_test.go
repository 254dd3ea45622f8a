package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// The kinds of rules in the engine, under many goroutines.

func loadPool(t testing.TB, e *core.Engine, r isolation.Rule) {
	t.Helper()
	require.NoError(t, e.Load(rules.Set{Isolation: []isolation.Rule{r}}))
}

func loadBreaker(t testing.TB, e *core.Engine, r breaker.Rule) {
	t.Helper()
	require.NoError(t, e.Load(rules.Set{Breaker: []breaker.Rule{r}}))
}

// gaugesOf returns the gauges of the only rule on a resource, by name.
func gaugesOf(t testing.TB, e *core.Engine, resource string) map[string]float64 {
	t.Helper()
	all := e.Explain(resource)
	require.Len(t, all, 1)
	gauges := map[string]float64{}
	for i, g := range all[0].Rule.Type().Gauges() {
		gauges[g.Name] = all[0].Gauges[i]
	}
	return gauges
}

// underWay counts calls under way and the highest number of them.
type underWay struct{ now, highest atomic.Int64 }

func (u *underWay) enter() {
	now := u.now.Add(1)
	for highest := u.highest.Load(); now > highest && !u.highest.CompareAndSwap(highest, now); {
		highest = u.highest.Load()
	}
}

func (u *underWay) leave() { u.now.Add(-1) }

// Calls wait, are refused, give up, panic, and come with new names; the rule is loaded
// again and again. Never is one more under way than the highest limit in force.
func TestEngineNeverHasOneMoreUnderWayThanTheLimit(t *testing.T) {
	const goroutines, limit = 64, 5
	calls := longtest.Short(300, 60)
	e := core.New(core.Config{Logger: quiet})
	defer e.Close()
	pool := isolation.Rule{Name: "pool", Match: "*", Shared: true, Limit: limit, MaxWait: time.Minute}
	loadPool(t, e, pool)
	var under underWay
	var passed atomic.Int64
	callOnce := func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if rand.IntN(4) == 0 {
			go cancel()
		}
		defer func() { _ = recover() }()
		guard, err := e.Entry(ctx, fmt.Sprint("r", rand.IntN(3)))
		if err != nil {
			assert.True(t, errors.Is(err, core.ErrBlocked) || errors.Is(err, context.Canceled), "%v", err)
			return
		}
		defer guard.Exit()
		under.enter()
		defer under.leave()
		passed.Add(1)
		runtime.Gosched()
		if rand.IntN(20) == 0 {
			panic("in the guarded code")
		}
	}
	stop := make(chan struct{})
	var reloads, callers sync.WaitGroup
	reloads.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			next := pool
			next.Limit = 1 + i%limit
			next.Order = []isolation.Order{isolation.FIFO, isolation.LIFO}[i%2]
			assert.NoError(t, e.Load(rules.Set{Isolation: []isolation.Rule{next}}))
			runtime.Gosched()
		}
	})
	for range goroutines {
		callers.Go(func() {
			for range calls {
				callOnce()
			}
		})
	}
	callers.Wait()
	close(stop)
	reloads.Wait()
	assert.LessOrEqual(t, under.highest.Load(), int64(limit))
	assert.NotZero(t, passed.Load())
	gauges := gaugesOf(t, e, "r0")
	assert.Zero(t, gauges["in_flight"])
	assert.Zero(t, gauges["waiting"])
	assert.LessOrEqual(t, gauges["highest"], float64(limit))
}

// Whenever all goroutines are blocked, either no call waits or all places are taken.
func TestNoPlaceOfTheEngineIsIdleWhileACallWaits(t *testing.T) {
	const limit = 3
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet})
		defer e.Close()
		pool := isolation.Rule{Name: "pool", Resource: "r", Limit: limit, MaxWait: time.Hour}
		loadPool(t, e, pool)
		var under underWay
		var passed atomic.Int64
		var wg sync.WaitGroup
		for i := range 64 {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			wg.Go(func() {
				for range 20 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(400))*time.Millisecond)
					if guard, err := e.Entry(ctx, "r"); err == nil {
						under.enter()
						passed.Add(1)
						time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond)
						under.leave()
						guard.Exit()
					}
					cancel()
				}
			})
		}
		looked := 0
		for i := range 500 {
			time.Sleep(777 * time.Microsecond)
			synctest.Wait()
			if i%10 == 9 {
				pool.Limit = limit - i/10%2
				loadPool(t, e, pool)
				synctest.Wait()
			}
			if gauges := gaugesOf(t, e, "r"); gauges["waiting"] > 0 {
				assert.GreaterOrEqual(t, gauges["in_flight"], float64(pool.Limit), "a place is idle")
				looked++
			}
			assert.LessOrEqual(t, under.now.Load(), int64(limit))
		}
		wg.Wait()
		assert.LessOrEqual(t, under.highest.Load(), int64(limit))
		assert.Greater(t, passed.Load(), int64(200))
		assert.Greater(t, looked, 100)
	})
}

func TestLoweredLimitLetsCallsUnderWayFinish(t *testing.T) {
	e, _ := newEngine(t)
	pool := isolation.Rule{Name: "pool", Resource: "r", Limit: 4}
	loadPool(t, e, pool)
	guards := make([]core.Guard, 4)
	for i := range guards {
		var err error
		guards[i], err = e.Entry(t.Context(), "r")
		require.NoError(t, err)
	}
	pool.Limit = 2
	loadPool(t, e, pool)
	for i, passes := range []bool{false, false, true} {
		guards[i].Exit()
		guard, err := e.Entry(t.Context(), "r")
		assert.Equal(t, passes, err == nil, "after %d ends", i+1)
		guard.Exit()
	}
	pool.Limit = 3
	loadPool(t, e, pool)
	assert.Equal(t, 1, enter(e, "r", 1), "one is under way")
	guards[3].Exit()
}

// Ten thousand calls wait; then one after the other gets a place.
func TestTenThousandCallsWaitAndPass(t *testing.T) {
	const waiting = 10_000
	e := core.New(core.Config{Logger: quiet})
	defer e.Close()
	loadPool(t, e, isolation.Rule{Resource: "r", Limit: 1, MaxWait: time.Hour, MaxQueue: waiting})
	first, err := e.Entry(t.Context(), "r")
	require.NoError(t, err)
	var under underWay
	var wg sync.WaitGroup
	var passed atomic.Int64
	for range waiting {
		wg.Go(func() {
			guard, err := e.Entry(t.Context(), "r")
			if !assert.NoError(t, err) {
				return
			}
			under.enter()
			passed.Add(1)
			under.leave()
			guard.Exit()
		})
	}
	for gaugesOf(t, e, "r")["waiting"] < waiting {
		runtime.Gosched()
	}
	_, err = e.Entry(t.Context(), "r")
	require.ErrorIs(t, err, core.ErrBlocked, "the queue is full")
	first.Exit()
	wg.Wait()
	assert.EqualValues(t, waiting, passed.Load())
	assert.EqualValues(t, 1, under.highest.Load())
}

func TestClosedEngineLetsGoOfCallsThatWaitForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet})
		loadPool(t, e, isolation.Rule{Resource: "r", Limit: 1, MaxWait: time.Hour})
		first, err := e.Entry(t.Context(), "r")
		require.NoError(t, err)
		var closed atomic.Int64
		for range 100 {
			go func() {
				if _, err := e.Entry(t.Context(), "r"); errors.Is(err, core.ErrClosed) {
					closed.Add(1)
				}
			}()
		}
		synctest.Wait()
		e.Close()
		synctest.Wait()
		assert.EqualValues(t, 100, closed.Load())
		first.Exit()
	})
}

// Names that find no space in the engine share the limit of the pattern.
func TestNamesBeyondTheBoundShareALimit(t *testing.T) {
	e := core.New(core.Config{Logger: quiet, MaxResources: 2})
	defer e.Close()
	loadPool(t, e, isolation.Rule{Match: "*", Limit: 3})
	var guards []*core.Guard
	pass := func(name string) bool {
		guard, err := e.Entry(t.Context(), name)
		guards = append(guards, &guard)
		return err == nil
	}
	for i := range 6 {
		assert.Equal(t, i < 3, pass("a"))
		assert.Equal(t, i < 3, pass("b"))
	}
	passed := 0
	for i := range 100 {
		if pass(fmt.Sprint("beyond", i)) {
			passed++
		}
	}
	assert.Equal(t, 3, passed)
	for _, g := range guards {
		g.Exit()
	}
	assert.True(t, pass("beyond"))
	guards[len(guards)-1].Exit()
}

// The observer is told of each change once, in their order, and may ask the engine.
func TestObserverOfABreakerMayAskTheEngine(t *testing.T) {
	c := clock.NewVirtual(begin)
	var e *core.Engine
	var changes []string
	r := breaker.Rule{Name: "circuit", Resource: "r", Threshold: 0.5, MinCalls: 2, Probes: 1}
	e = core.New(core.Config{Clock: c, Logger: quiet, Observer: core.Observer{StateChanged: func(s core.StateChange) {
		changes = append(changes, s.From+" "+s.To)
		assert.Equal(t, 1, e.Status().Rules)
		assert.Equal(t, s.To, e.Explain("r")[0].State)
		assert.NotNil(t, e.Snapshot())
		next := r
		next.MinCalls = 2 + len(changes)%2
		assert.NoError(t, e.Load(rules.Set{Breaker: []breaker.Rule{next}}))
		if len(changes) == 4 {
			assert.NoError(t, e.Control(core.Scope{Kind: "breaker", Rule: "circuit"}, breaker.Open))
		}
		guard, err := e.Entry(context.Background(), "r")
		if err == nil {
			guard.Exit()
		}
	}}})
	defer e.Close()
	loadBreaker(t, e, r)
	fail := func() {
		guard, err := e.Entry(t.Context(), "r")
		if err == nil {
			guard.MarkFailed()
			guard.Exit()
		}
	}
	for range 10 {
		fail()
	}
	require.Equal(t, []string{"closed open"}, changes)
	c.Advance(breaker.Kind().WithDefaults(breaker.Rule{}).OpenFor)
	require.Equal(t, 1, enter(e, "r", 1), "the probe; the observer's own call is refused")
	require.Equal(t, []string{"closed open", "open halfOpen", "halfOpen closed"}, changes)
	for range 10 {
		fail()
	}
	assert.Equal(t, []string{"closed open", "open halfOpen", "halfOpen closed", "closed open"}, changes)
	assert.InDelta(t, 1, gaugesOf(t, e, "r")["forced"], 0)
	require.NoError(t, e.Control(core.Scope{Kind: "breaker", Rule: "circuit"}, ""))
	assert.Equal(t, "open closed", changes[4])
	assert.Len(t, changes, 5)
}

// 64 goroutines call, fail and reload while the breaker opens, probes and closes: each
// change follows on the one before, and is counted and reported once.
func TestChangesOfABreakerUnderLoadAreReportedOnceAndInOrder(t *testing.T) {
	const probes = 3
	c := clock.NewVirtual(begin)
	var mu sync.Mutex
	var changes []core.StateChange
	var e *core.Engine
	e = core.New(core.Config{Clock: c, Logger: quiet, Observer: core.Observer{StateChanged: func(s core.StateChange) {
		e.Status()
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, s)
	}}})
	defer e.Close()
	r := breaker.Rule{
		Name: "circuit", Resource: "r", Threshold: 0.5, MinCalls: 10, Window: 100 * time.Millisecond,
		OpenFor: 10 * time.Millisecond, MaxOpenFor: 40 * time.Millisecond, Probes: probes,
	}
	loadBreaker(t, e, r)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for k := range 300 {
				if guard, err := e.Entry(context.Background(), "r"); err == nil {
					if k/50%2 == 0 && rand.IntN(3) > 0 {
						guard.MarkFailed()
					}
					guard.Exit()
				}
				if i == 0 {
					c.Advance(time.Millisecond)
				}
				if i == 1 && k%10 == 0 {
					next := r
					next.MinCalls = 10 + k%3
					assert.NoError(t, e.Load(rules.Set{Breaker: []breaker.Rule{next}}))
				}
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
	state, counts := breaker.Closed, map[string]uint64{}
	for i, s := range changes {
		require.Equal(t, state, s.From, "change %d: %+v", i, changes)
		if i > 0 {
			require.GreaterOrEqual(t, s.At, changes[i-1].At)
		}
		state = s.To
		counts[s.From+" "+s.To]++
	}
	status := e.Explain("r")[0]
	assert.Equal(t, state, status.State)
	assert.NotEmpty(t, changes)
	for _, n := range status.Transitions {
		assert.Equal(t, counts[n.From+" "+n.To], n.Count, "%s %s", n.From, n.To)
		delete(counts, n.From+" "+n.To)
	}
	assert.Empty(t, counts)
}

// A change of state is found by a call, the end of a call, a reload, a look at the
// engine or an operator. In each case the observer may use the engine.
func TestObserverMayUseTheEngineWhateverFoundTheChange(t *testing.T) {
	key := rule.Key{Kind: "breaker", Name: "circuit"}
	r := breaker.Rule{
		Name: "circuit", Resource: "r", Threshold: 0.5, MinCalls: 1, Probes: 3,
		OpenFor: time.Second, ProbeTimeout: time.Second,
	}
	for name, find := range map[string]func(t *testing.T, e *core.Engine, c *clock.Virtual){
		"reload": func(t *testing.T, e *core.Engine, _ *clock.Virtual) {
			assert.Equal(t, 1, enter(e, "r", 1), "one of three probes ends well")
			next := r
			next.Probes = 1 // so one is enough
			loadBreaker(t, e, next)
		},
		"reload after a timeout": func(t *testing.T, e *core.Engine, c *clock.Virtual) {
			_, err := e.Entry(t.Context(), "r")
			require.NoError(t, err)
			c.Advance(2 * time.Second)
			next := r
			next.MinCalls = 2
			loadBreaker(t, e, next)
		},
		"snapshot": func(t *testing.T, e *core.Engine, c *clock.Virtual) {
			_, err := e.Entry(t.Context(), "r")
			require.NoError(t, err)
			c.Advance(2 * time.Second)
			assert.NotEmpty(t, e.Snapshot().Resources)
		},
		"explanation": func(t *testing.T, e *core.Engine, c *clock.Virtual) {
			_, err := e.Entry(t.Context(), "r")
			require.NoError(t, err)
			c.Advance(2 * time.Second)
			assert.Len(t, e.Explain("r"), 1)
		},
		"operator": func(t *testing.T, e *core.Engine, _ *clock.Virtual) {
			assert.NoError(t, e.Control(core.Scope{Kind: key.Kind, Rule: key.Name}, breaker.Open))
		},
		"the rule goes": func(t *testing.T, e *core.Engine, c *clock.Virtual) {
			guard, err := e.Entry(t.Context(), "r")
			require.NoError(t, err)
			guard.MarkFailed()
			guard.Exit()
			c.Advance(time.Second)
			assert.NoError(t, e.Load(rules.Set{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := clock.NewVirtual(begin)
			var e *core.Engine
			changes := 0
			e = core.New(core.Config{Clock: c, Logger: quiet, Observer: core.Observer{StateChanged: func(core.StateChange) {
				if changes++; changes < 3 {
					return // it opens, and probes
				}
				assert.NotNil(t, e.Snapshot())
				assert.NotEmpty(t, e.Status())
				assert.Len(t, e.Explain("r"), 1)
				assert.NoError(t, e.LoadAs("another", rules.Set{Isolation: []isolation.Rule{{Resource: "new", Limit: changes}}}))
				assert.NoError(t, e.Control(core.Scope{Kind: key.Kind, Rule: key.Name}, breaker.Closed))
				guard, err := e.Entry(context.Background(), "new")
				assert.NoError(t, err)
				guard.Exit()
			}}})
			defer e.Close()
			loadBreaker(t, e, r)
			guard, err := e.Entry(t.Context(), "r")
			require.NoError(t, err)
			guard.MarkFailed()
			guard.Exit()
			c.Advance(time.Second)
			given, err := e.Entry(t.Context(), "r")
			require.NoError(t, err, "a probe")
			defer given.Exit()
			given.Fail(context.Canceled)
			given.Exit()
			require.Equal(t, 2, changes)
			find(t, e, c)
			assert.GreaterOrEqual(t, changes, 3)
		})
	}
}
