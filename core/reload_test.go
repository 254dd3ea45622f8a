package core_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/rules"
)

func TestLoadIsAllOrNothing(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Resource: "r", Limit: 1})
	err := e.Load(rules.Set{Flow: []flow.Rule{
		{Resource: "r", Limit: 5}, {Resource: "", Limit: -1}, {Resource: "x", Limit: 1, Window: 1}, {Resource: "r", Limit: 7},
	}})
	var problems rules.Problems
	require.ErrorAs(t, err, &problems)
	assert.GreaterOrEqual(t, len(problems), 4, "all mistakes at once: %v", err)
	assert.Equal(t, map[string]float64{"r": 1}, active(e))
	assert.EqualValues(t, 1, e.Status().Revision)
}

func TestLoadKeepsNothingOfTheCallers(t *testing.T) {
	e, _ := newEngine(t)
	mine := []flow.Rule{{Resource: "r", Limit: 1}}
	before := mine[0]
	require.NoError(t, e.Load(rules.Set{Flow: mine}))
	assert.Equal(t, before, mine[0], "it was written to")

	mine[0].Limit = 100 // edited in place: no effect before it is loaded, full effect then
	assert.Equal(t, 1, enter(e, "r", 10))
	require.NoError(t, e.Load(rules.Set{Flow: mine}))
	assert.Equal(t, 99, enter(e, "r", 200))
}

func TestLoadingTheSameAgainChangesNothing(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Resource: "r", Limit: 1})
	status := e.Status()
	load(t, e, flow.Rule{Resource: "r", Limit: 1, Window: time.Second}) // a default written out
	assert.Equal(t, status, e.Status())
}

func TestARuleKeepsItsStateOverReloads(t *testing.T) {
	rule := flow.Rule{Resource: "r", Limit: 100}
	warm := flow.Rule{Resource: "warm", Limit: 100, WarmUp: flow.WarmUp{Period: 10 * time.Second}}
	queue := throttle("queue", 1, 0)
	e, c := newEngine(t, rule, warm, queue)
	require.Equal(t, 100, enter(e, "r", 200))
	require.Equal(t, 1, enter(e, "queue", 2))
	for range 15 {
		enter(e, "warm", 200)
		c.Advance(time.Second)
	}
	require.Equal(t, 100, enter(e, "r", 200))
	require.Equal(t, 100, enter(e, "warm", 200))
	require.Equal(t, 1, enter(e, "queue", 2))

	rule.Limit, warm.Limit, queue.Limit = 110, 110, 1.1
	load(t, e, rule, warm, queue)
	assert.Equal(t, 10, enter(e, "r", 200), "the window's counts")
	assert.Equal(t, 10, enter(e, "warm", 200), "warm stays warm")
	assert.Equal(t, 0, enter(e, "queue", 2), "the last pass")
	c.Advance(time.Second)
	assert.Equal(t, 1, enter(e, "queue", 2), "a call passes sooner now: 909 ms after the last")

	load(t, e)
	assert.Equal(t, 50, enter(e, "r", 50), "no rule, no limit")
	load(t, e, rule)
	assert.Equal(t, 110, enter(e, "r", 200), "a rule that was gone starts anew")
}

func TestARuleThatMovesToAnotherResource(t *testing.T) {
	e, c := newEngine(t, flow.Rule{Name: "n", Resource: "a", Limit: 1})
	require.Equal(t, 1, enter(e, "a", 5))
	load(t, e, flow.Rule{Name: "n", Resource: "b", Limit: 1})
	assert.Equal(t, 5, enter(e, "a", 5))
	assert.Equal(t, 1, enter(e, "b", 5))
	load(t, e, flow.Rule{Name: "n", Resource: "b", Limit: 1, Algorithm: flow.Throttle})
	assert.Equal(t, 0, enter(e, "b", 5), "the call that the window let through was this second")
	c.Advance(time.Second)
	assert.Equal(t, 1, enter(e, "b", 5))
}

// Either set refuses every call. A call that saw one rule of each would pass.
func TestNoCallSeesHalfASet(t *testing.T) {
	sets := make([]rules.Set, 2)
	for i := range 1000 {
		first, second := fmt.Sprint("first", i), fmt.Sprint("second", i)
		resource := fmt.Sprint("r", i)
		sets[0].Flow = append(sets[0].Flow,
			flow.Rule{Name: first, Resource: resource, Limit: 0}, flow.Rule{Name: second, Resource: resource, Limit: 1e6})
		sets[1].Flow = append(sets[1].Flow,
			flow.Rule{Name: first, Resource: resource, Limit: 1e6}, flow.Rule{Name: second, Resource: resource, Limit: 0})
	}
	e := core.New(core.Config{Logger: quiet})
	defer e.Close()
	require.NoError(t, e.Load(sets[0]))

	var passed, refused atomic.Int64
	storm(t, e, 1000, 200, func(i int) rules.Set { return sets[i%2] }, func(i int) {
		guard, err := e.Entry(context.Background(), fmt.Sprint("r", i%1000))
		if err == nil {
			passed.Add(1)
			guard.Exit()
			return
		}
		assert.ErrorIs(t, err, core.ErrBlocked)
		refused.Add(1)
	})
	assert.Zero(t, passed.Load())
	var blocked uint64
	for _, r := range e.Snapshot().Resources {
		blocked += r.Blocked
	}
	assert.EqualValues(t, refused.Load(), blocked, "none is lost")
}

// Rules of all kinds come, change and go while calls pass, wait and are given
// up. In the end nothing is under way.
func TestNoCallIsLostInAStormOfReloads(t *testing.T) {
	e := core.New(core.Config{Logger: quiet})
	defer e.Close()
	set := func(i int) (set rules.Set) {
		for r := range 1000 {
			resource, limit := fmt.Sprint("r", r), float64(100+i%5)
			switch (i + r) % 4 {
			case 0:
				set.Flow = append(set.Flow, flow.Rule{Resource: resource, Limit: limit, Buckets: 1 + i%2})
			case 1:
				set.Flow = append(set.Flow, throttle(resource, limit*1000, time.Millisecond))
			case 2:
				set.Flow = append(set.Flow, throttle(resource, limit*1000, time.Millisecond),
					flow.Rule{Name: resource + "w", Resource: resource, Limit: limit, WarmUp: flow.WarmUp{Period: time.Second}})
			}
		}
		return set
	}
	var passed, blocked, cancelled atomic.Int64
	storm(t, e, 1000, 100, set, func(i int) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if i%7 == 0 {
			context.AfterFunc(ctx, func() {})
			cancel()
		}
		switch guard, err := e.Entry(ctx, fmt.Sprint("r", i%50)); {
		case err == nil:
			passed.Add(1)
			guard.Exit()
		case ctx.Err() != nil && err == ctx.Err(): //nolint:errorlint // the very error is promised
			cancelled.Add(1)
		default:
			assert.ErrorIs(t, err, core.ErrBlocked)
			blocked.Add(1)
		}
	})
	var s struct{ inFlight, waiting, passed, blocked int64 }
	for _, r := range e.Snapshot().Resources {
		s.inFlight += r.InFlight
		s.waiting += r.Waiting
		s.passed += int64(r.Passed)
		s.blocked += int64(r.Blocked)
	}
	assert.Zero(t, s.inFlight)
	assert.Zero(t, s.waiting)
	assert.Equal(t, passed.Load(), s.passed)
	assert.Equal(t, blocked.Load(), s.blocked)
	t.Logf("%d passed, %d blocked, %d cancelled", passed.Load(), blocked.Load(), cancelled.Load())
}

// storm makes calls from many goroutines while rules are reloaded in a loop, at least ten times; a fifth of
// the calls under the race detector.
func storm(t *testing.T, e *core.Engine, goroutines, calls int, set func(i int) rules.Set, call func(i int)) {
	t.Helper()
	calls = longtest.Short(calls, calls/10)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range calls {
				call(g*calls + i)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	for i := 0; ; i++ {
		select {
		case <-done:
			if i >= 10 {
				return
			}
		default:
		}
		require.NoError(t, e.Load(set(i)))
	}
}
