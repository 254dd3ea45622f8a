package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// Sixty-four goroutines, patterns, reloads, eviction and more names than there is
// room for: each ceiling holds, and every call is accounted for.
func TestCeilingsHoldUnderEverythingAtOnce(t *testing.T) {
	const limit, shared, goroutines, calls = 40, 300, 64, 4000
	ticks := newTicking(5 * time.Millisecond) // minutes pass
	var refused atomic.Int64
	e := core.New(core.Config{Clock: ticks, Logger: quiet, MaxResources: 12, Observer: core.Observer{
		Refused: func(*core.BlockError) { refused.Add(1) },
	}})
	defer e.Close()
	each := flow.Rule{Name: "each", Match: "k:*", Limit: limit, Window: 24 * time.Hour, Buckets: 1}
	together := flow.Rule{Name: "together", Match: "s:*", Limit: shared, Window: 24 * time.Hour, Buckets: 1, Shared: true}
	load(t, e, each, together)
	passed := make([][40]atomic.Int64, 3)
	var blocked, all atomic.Int64
	storm(t, e, goroutines, calls, func(i int) rules.Set {
		set := rules.Set{Flow: []flow.Rule{each, together}}
		switch i % 4 {
		case 1:
			set.Flow = append(set.Flow, flow.Rule{Name: "noise", Match: "*", Limit: 1e9 - float64(i)})
		case 2:
			set.Flow = append(set.Flow, flow.Rule{Name: "named", Resource: fmt.Sprint("k:", i%40), Limit: 1e9})
		case 3:
			set.Flow[0].Origin = "" // the same
			set.Flow = append(set.Flow, flow.Rule{Name: "shadow", Match: "*", Limit: 1, Shadow: true})
		}
		return set
	}, func(i int) {
		kind, n := i%3, rand.IntN(40)
		name := fmt.Sprint([]string{"k:", "s:", "free:"}[kind], n)
		guard, err := e.Entry(context.Background(), name)
		all.Add(1)
		if err != nil {
			assert.ErrorIs(t, err, core.ErrBlocked)
			assert.NotEqual(t, 2, kind, name)
			blocked.Add(1)
			return
		}
		passed[kind][n].Add(1)
		guard.Exit()
	})

	beyond, sum := int64(0), int64(0)
	for i := range passed[0] {
		beyond += max(0, passed[0][i].Load()-limit)
		sum += passed[1][i].Load()
	}
	assert.LessOrEqual(t, beyond, int64(limit), "what the overflow let pass")
	assert.EqualValues(t, shared, sum)
	assert.Equal(t, blocked.Load(), refused.Load())
	for _, r := range e.Snapshot().Resources {
		assert.Zero(t, r.InFlight, r.Name)
		assert.Zero(t, r.Waiting, r.Name)
		assert.Equal(t, r.Passed, r.Completed, r.Name)
	}
}

// Without eviction the statistics have each call once, wherever it was counted.
func TestEveryCallIsCountedOnceBeyondTheBoundOnNames(t *testing.T) {
	const goroutines, calls = 64, 3000
	e := core.New(core.Config{Clock: newTicking(time.Microsecond), Logger: quiet, MaxResources: 10})
	defer e.Close()
	var passed, blocked atomic.Uint64
	storm(t, e, goroutines, calls, func(i int) rules.Set {
		return rules.Set{Flow: []flow.Rule{
			{Name: "p", Match: "n:*", Limit: float64(20 + i%2)},
			{Name: "q", Match: "n:?", Limit: 50, Shared: i%3 == 0},
			{Name: "b", Match: "n:*", Limit: 100, Algorithm: flow.TokenBucket},
			{Name: "x", Resource: fmt.Sprint("n:", i%30), Limit: 5},
		}}
	}, func(i int) {
		guard, err := e.Entry(context.Background(), fmt.Sprint("n:", i%50))
		if err != nil {
			blocked.Add(1)
			return
		}
		passed.Add(1)
		guard.Exit()
	})
	var gotPassed, gotBlocked uint64
	for _, r := range e.Snapshot().Resources {
		gotPassed += r.Passed
		gotBlocked += r.Blocked
		assert.Zero(t, r.InFlight, r.Name)
	}
	assert.Equal(t, passed.Load(), gotPassed)
	assert.Equal(t, blocked.Load(), gotBlocked)
}

// A call sees one set or the other, whichever way its resource comes by its
// rules: each set refuses every call by one of its rules.
func TestNoCallSeesHalfASetOfPatterns(t *testing.T) {
	closed, open := 0.0, 1e6
	for name, sets := range map[string][2][]flow.Rule{
		"limits cross": {
			{{Name: "a", Match: "n*", Limit: closed}, {Name: "b", Match: "*", Limit: open}},
			{{Name: "a", Match: "n*", Limit: open}, {Name: "b", Match: "*", Limit: closed}},
		},
		"one for the other": {{{Name: "a", Match: "n*", Limit: closed}}, {{Name: "b", Match: "~^n", Limit: closed}}},
		"shared or not":     {{{Name: "a", Match: "n*", Limit: closed, Shared: true}}, {{Name: "a", Match: "n*", Limit: closed}}},
		"another limiter": {
			{{Name: "a", Match: "n*", Limit: closed, Algorithm: flow.TokenBucket}}, {{Name: "a", Match: "n*", Limit: closed}},
		},
		"a queue or a window": {
			{{Name: "a", Match: "n*", Limit: closed, Control: flow.Throttle}, {Name: "b", Match: "*", Limit: open}},
			{{Name: "a", Match: "n*", Limit: open, Control: flow.Throttle, MaxWait: time.Hour}, {Name: "b", Match: "*", Limit: closed}},
		},
		"origins": {
			{{Name: "a", Match: "n*", Limit: closed, Origin: "me"}, {Name: "b", Match: "n*", Limit: open, Origin: flow.OtherOrigins}},
			{{Name: "a", Match: "n*", Limit: open, Origin: "you"}, {Name: "b", Match: "n*", Limit: closed, Origin: flow.OtherOrigins}},
		},
		"shadows": {
			{{Name: "a", Match: "n*", Limit: closed, Shadow: true}, {Name: "b", Match: "*", Limit: closed}},
			{{Name: "a", Match: "n*", Limit: closed}, {Name: "b", Match: "*", Limit: closed, Shadow: true}},
		},
		"a pattern or a name": {
			{{Name: "a", Match: "n*", Limit: closed}},
			append(namedRules(40), flow.Rule{Name: "a", Match: "n*", Limit: open}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := core.New(core.Config{Logger: quiet, MaxResources: 15})
			defer e.Close()
			require.NoError(t, e.Load(rules.Set{Flow: sets[0]}))
			handles := make([]*core.Resource, 40)
			for i := range handles {
				handles[i] = e.Resource(fmt.Sprint("n", i))
			}
			var passed atomic.Int64
			storm(t, e, 16, 6000, func(i int) rules.Set { return rules.Set{Flow: sets[i%2]} }, func(i int) {
				var err error
				var guard core.Guard
				if i%2 == 0 {
					guard, err = e.Entry(context.Background(), fmt.Sprint("n", i%40), core.Origin("me"))
				} else {
					guard, err = handles[i%40].Entry(context.Background(), core.Origin("me"))
				}
				if err == nil {
					passed.Add(1)
					guard.Exit()
				}
			})
			assert.Zero(t, passed.Load())
			assert.LessOrEqual(t, len(e.Snapshot().Resources), 15+40+1)
		})
	}
}

func namedRules(n int) (rules []flow.Rule) {
	for i := range n {
		rules = append(rules, flow.Rule{Name: fmt.Sprint("named", i), Resource: fmt.Sprint("n", i), Limit: 0})
	}
	return rules
}

// Once Load has returned, every call acts by the new set.
func TestALoadThatReturnedHolds(t *testing.T) {
	e := core.New(core.Config{Logger: quiet, MaxResources: 5})
	defer e.Close()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for g := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					enter(e, fmt.Sprint("x", (g*31+i)%20), 1)
					e.Explain(fmt.Sprint("y", i%20))
				}
			}
		})
	}
	handles := map[string]*core.Resource{}
	for i := range 400 {
		closed, open := [2]string{"x", "y"}[i%2], [2]string{"y", "x"}[i%2]
		load(t, e, flow.Rule{Name: "r", Match: closed + "*", Limit: 0})
		for n := range 10 {
			name := fmt.Sprint(closed, n)
			if handles[name] == nil {
				handles[name] = e.Resource(name)
			}
			_, err := handles[name].Entry(context.Background())
			require.ErrorIs(t, err, core.ErrBlocked, name)
			require.Zero(t, enter(e, name, 1), name)
			require.Len(t, e.Explain(name), 1)
			require.Equal(t, 1, enter(e, fmt.Sprint(open, n), 1))
		}
	}
	close(stop)
	wg.Wait()
}

// waitersOf makes calls that wait, of known names and of names beyond the bound,
// and returns a function that waits for their end and tells what became of them.
func waitersOf(t *testing.T, e *core.Engine, names []string, each int) (end func() map[string]int) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[string]int{}
	for _, name := range names {
		for range each {
			wg.Go(func() {
				guard, err := e.Entry(context.Background(), name)
				guard.Exit()
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					outcomes["passed"]++
				case errors.Is(err, core.ErrBlocked):
					outcomes["blocked"]++
				case errors.Is(err, core.ErrClosed):
					outcomes["closed"]++
				}
			})
			synctest.Wait()
		}
	}
	return func() map[string]int {
		wg.Wait()
		return outcomes
	}
}

func TestWaitersInTheQueuesOfPatterns(t *testing.T) {
	queue := flow.Rule{Name: "q", Match: "n*", Limit: 1, Control: flow.Throttle, MaxWait: time.Hour}
	changed := func(change func(r *flow.Rule)) []flow.Rule {
		r := queue
		change(&r)
		return []flow.Rule{r}
	}
	for name, test := range map[string]struct {
		then []flow.Rule
		took time.Duration
		want map[string]int
	}{
		// Three calls of each of four names, two of which share the overflow: one
		// passes at once on n0, on n1 and on the overflow.
		"nothing changes":     {[]flow.Rule{queue}, 5 * time.Second, map[string]int{"passed": 12}},
		"the rule goes":       {nil, 0, map[string]int{"passed": 12}},
		"it becomes faster":   {changed(func(r *flow.Rule) { r.Limit = 10 }), 500 * time.Millisecond, map[string]int{"passed": 12}},
		"it lets nobody wait": {changed(func(r *flow.Rule) { r.MaxWait = 0 }), 0, map[string]int{"passed": 3, "blocked": 9}},
		"it blocks all":       {changed(func(r *flow.Rule) { r.Limit = 0 }), 0, map[string]int{"passed": 3, "blocked": 9}},
		"it becomes a shadow": {changed(func(r *flow.Rule) { r.Shadow = true }), 0, map[string]int{"passed": 12}},
		"it is shared":        {changed(func(r *flow.Rule) { r.Shared = true }), 8 * time.Second, map[string]int{"passed": 12}},
		"another pattern":     {changed(func(r *flow.Rule) { r.Match = "x*" }), 0, map[string]int{"passed": 12}},
		"another limiter": {
			changed(func(r *flow.Rule) { r.Control, r.Algorithm = flow.Reject, flow.TokenBucket }), 4 * time.Second,
			map[string]int{"passed": 12},
		},
		"a window instead": {
			[]flow.Rule{{Name: "q", Match: "n*", Limit: 2}}, 0, map[string]int{"passed": 3 + 6, "blocked": 3},
		},
		// Whoever is refused gives the turn back, and those behind move up.
		"a closed pattern beside it": {
			[]flow.Rule{queue, {Name: "closed", Match: "*", Limit: 0}}, time.Second, map[string]int{"passed": 3, "blocked": 9},
		},
		"a closed rule beside it that names some": {
			[]flow.Rule{queue, {Resource: "n0", Limit: 0}, {Resource: "n2", Limit: 0}, {Resource: "n3", Limit: 0}},
			2 * time.Second,
			map[string]int{"passed": 3 + 2, "blocked": 7},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := core.New(core.Config{Logger: quiet, MaxResources: 2})
				defer e.Close()
				load(t, e, queue)
				end := waitersOf(t, e, []string{"n0", "n1", "n2", "n3"}, 3)
				start := time.Now()
				load(t, e, test.then...)
				assert.Equal(t, test.want, end())
				assert.Equal(t, test.took, time.Since(start))
				for _, r := range e.Snapshot().Resources {
					assert.Zero(t, r.Waiting+r.InFlight, r.Name)
				}
			})
		})
	}
}

func TestCloseWakesTheWaitersOfPatterns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet, MaxResources: 1})
		load(t, e, flow.Rule{Match: "n*", Limit: 1, Control: flow.Throttle, MaxWait: time.Hour},
			flow.Rule{Name: "bucket", Match: "n*", Limit: 1, Algorithm: flow.TokenBucket, MaxWait: time.Hour, Shared: true})
		end := waitersOf(t, e, []string{"n0", "n1", "n2"}, 3)
		start := time.Now()
		e.Close()
		assert.Equal(t, map[string]int{"passed": 1, "closed": 8}, end())
		assert.Zero(t, time.Since(start))
	})
}

// A call that is decided step by step gives up as one in Entry does.
func TestAnArrivalGivesUpWhenItsContextOrTheEngineEnds(t *testing.T) {
	for _, head := range []bool{true, false} {
		e, _ := newEngine(t, throttle("r", 1, time.Minute))
		enter(e, "r", 1)
		if !head {
			_, done := e.Arrive(t.Context(), "r", func() {}).Proceed()
			require.False(t, done)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancelled, closed := e.Arrive(ctx, "r", func() {}), e.Arrive(t.Context(), "r", func() {})
		for _, a := range []*core.Arrival{cancelled, closed} {
			_, done := a.Proceed()
			require.False(t, done)
		}
		cancel()
		_, done := cancelled.Proceed()
		assert.True(t, done, "its context has ended, first in the queue: %v", head)
		_, err := cancelled.Result()
		require.ErrorIs(t, err, context.Canceled)
		e.Close()
		_, done = closed.Proceed()
		assert.True(t, done, "the engine is closed, first in the queue: %v", head)
		_, err = closed.Result()
		require.ErrorIs(t, err, core.ErrClosed)
	}
}

// Waiters that give up, reloads that take their queues away, and callers of many
// names: nobody hangs, nothing stays under way, no turn is too early.
func TestQueuesOfPatternsUnderStress(t *testing.T) {
	e := core.New(core.Config{Logger: quiet, MaxResources: 4})
	defer e.Close()
	queue := flow.Rule{Name: "q", Match: "n*", Limit: 5000, Control: flow.Throttle, MaxWait: 20 * time.Millisecond}
	bucket := flow.Rule{Name: "b", Match: "*", Limit: 20_000, Algorithm: flow.TokenBucket, Burst: 5, MaxWait: 10 * time.Millisecond}
	load(t, e, queue, bucket)
	var guards sync.Map
	storm(t, e, 64, 300, func(i int) rules.Set {
		q, b := queue, bucket
		q.Shared = i%7 == 0
		q.Shadow = i%5 == 0
		q.Limit += float64(i % 3)
		if b.Shared = i%11 == 0; i%3 == 0 {
			return rules.Set{Flow: []flow.Rule{b}}
		}
		return rules.Set{Flow: []flow.Rule{q, b}}
	}, func(i int) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i%10)*time.Millisecond)
		defer cancel()
		guard, err := e.Entry(ctx, fmt.Sprint("n", i%9))
		switch {
		case err == nil && i%3 == 0:
			guards.Store(i, &guard) // exits when its rules are gone
		case err == nil:
			guard.Exit()
		case !errors.Is(err, core.ErrBlocked):
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		}
	})
	load(t, e)
	guards.Range(func(_, guard any) bool {
		guard.(*core.Guard).Exit()
		return true
	})
	for _, r := range e.Snapshot().Resources {
		assert.Zero(t, r.InFlight, r.Name)
		assert.Zero(t, r.Waiting, r.Name)
		assert.Equal(t, r.Passed, r.Completed, r.Name)
	}
}

// The clock may stand anywhere from the epoch on.
func TestAnEngineWhoseClockStandsElsewhere(t *testing.T) {
	for _, start := range []time.Time{time.Unix(0, 0), time.Unix(0, 5e8), time.Unix(1<<33, 0)} {
		c := clock.NewVirtual(start)
		e := core.New(core.Config{Clock: c, Logger: quiet})
		load(t, e, flow.Rule{Resource: "sliding", Limit: 3}, flow.Rule{Resource: "fixed", Limit: 3, Algorithm: flow.FixedWindow},
			flow.Rule{Resource: "bucket", Limit: 3, Algorithm: flow.TokenBucket}, flow.Rule{Resource: "throttle", Limit: 1, Control: flow.Throttle})
		for range 3 {
			for name, want := range map[string]int{"sliding": 3, "fixed": 3, "bucket": 3, "throttle": 1} {
				assert.Equal(t, want, enter(e, name, 5), "%s at %v", name, c.Now().Time())
				assert.EqualValues(t, want, e.Resource(name).Minute()[59].Passed, "%s at %v", name, c.Now().Time())
			}
			c.Advance(time.Second)
		}
		e.Close()
	}
}

// A turn that was granted under the set before is worth nothing under one whose
// queue refuses every call: either set keeps the second call from passing now.
func TestATurnOfTheSetBeforeDoesNotOpenAClosedQueue(t *testing.T) {
	first := flow.Rule{Name: "first", Resource: "r", Limit: 1e6, Control: flow.Throttle, MaxWait: time.Minute}
	second := flow.Rule{Name: "second", Resource: "r", Limit: 1, Control: flow.Throttle, MaxWait: time.Minute}
	e, c := newEngine(t, first, second)
	enter(e, "r", 1)
	c.Advance(time.Millisecond)
	waits := e.Arrive(t.Context(), "r", func() {})
	_, done := waits.Proceed()
	require.False(t, done, "in the second queue")
	first.Limit = 0
	load(t, e, first)
	_, done = waits.Proceed()
	require.True(t, done)
	_, err := waits.Result()
	require.ErrorIs(t, err, core.ErrBlocked)
}

// Whoever waits in the queue of a rule that has become one for other callers is
// not refused by it.
func TestARuleForOthersRefusesNobodyWhoWaits(t *testing.T) {
	rule := throttle("r", 1, 5*time.Second)
	e, c := newEngine(t, rule)
	enter(e, "r", 1)
	waits := make([]*core.Arrival, 3)
	for i := range waits {
		waits[i] = e.Arrive(t.Context(), "r", func() {})
		_, done := waits[i].Proceed()
		require.False(t, done)
	}
	rule.Limit, rule.Origin = 0.5, "mobile"
	load(t, e, rule)
	for range 10 {
		for _, a := range waits {
			a.Proceed()
		}
		c.Advance(time.Second)
	}
	for i, a := range waits {
		_, done := a.Proceed()
		assert.True(t, done)
		_, err := a.Result()
		assert.NoError(t, err, "waiter %d", i)
	}
}
