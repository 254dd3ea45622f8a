package flow_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// await is how a goroutine gets through a queue: it joins, and waits for its
// pass or the end of its context.
func await(ctx context.Context, c clock.Clock, q *flow.Queue, compiled *flow.Compiled) (flow.Turn, bool) {
	w, woken := newWaiter()
	turn, decision := q.Join(compiled, c.Now(), 1, time.Hour, w)
	if decision != rule.Wait {
		return turn, decision == rule.Pass
	}
	for {
		turn, until, decision := q.Poll(c.Now(), w)
		if decision != rule.Wait {
			return turn, decision == rule.Pass
		}
		var over <-chan time.Time
		if until > 0 {
			timer := c.NewTimer(until)
			defer timer.Stop()
			over = timer.C()
		}
		select {
		case <-woken:
		case <-over:
		case <-ctx.Done():
			if turn, left := q.Leave(c.Now(), w); !left {
				q.GiveBack(c.Now(), turn)
			}
			return flow.Turn{}, false
		}
	}
}

func TestQueueServesGoroutinesInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const callers, spacing = 200, 10 * time.Millisecond
		c := clock.System()
		compiled := compile(t, throttle(100, time.Hour), 1)
		q := flow.NewQueue(compiled, c.Now())
		start := c.Now()
		went := make([]time.Duration, callers)
		var calling sync.WaitGroup
		for i := range callers {
			calling.Go(func() {
				turn, ok := await(t.Context(), c, q, compiled)
				assert.True(t, ok)
				assert.Equal(t, c.Now(), turn.Time(), "it passes when it may")
				went[i] = c.Now().Sub(start)
			})
			synctest.Wait() // they come one after the other
		}
		calling.Wait()
		assert.Equal(t, every(spacing, callers), went)
	})
}

func TestQueueLosesNoPassToGoroutinesThatGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const callers, spacing = 200, 10 * time.Millisecond
		c := clock.System()
		compiled := compile(t, throttle(100, time.Hour), 1)
		q := flow.NewQueue(compiled, c.Now())
		start := c.Now()
		var mu sync.Mutex
		var went []time.Duration
		var calling sync.WaitGroup
		for i := range callers {
			patience := time.Hour
			if i%3 == 1 {
				patience = time.Duration(i) * spacing / 4
			}
			calling.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if _, ok := await(ctx, c, q, compiled); ok {
					mu.Lock()
					defer mu.Unlock()
					went = append(went, c.Now().Sub(start))
				}
			})
			synctest.Wait()
		}
		calling.Wait()
		assert.Greater(t, len(went), callers/2)
		assert.Less(t, len(went), callers, "some have given up")
		assert.Equal(t, every(spacing, len(went)), went)
		assert.NoError(t, q.CheckWaiters(0))
	})
}

func TestWaitersAreReleasedWhenTheRuleIsRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clock.System()
		compiled := compile(t, throttle(1, time.Hour), 1)
		q := flow.NewQueue(compiled, c.Now())
		var passed, let atomic.Int64
		var calling sync.WaitGroup
		for range 50 {
			calling.Go(func() {
				if _, ok := await(t.Context(), c, q, compiled); ok {
					passed.Add(1)
				} else {
					let.Add(1)
				}
			})
		}
		<-time.After(2500 * time.Millisecond)
		q.Retire()
		calling.Wait()
		assert.Equal(t, int64(3), passed.Load())
		assert.Equal(t, int64(47), let.Load())
	})
}

// jostle is many goroutines in one queue, on a time that they move themselves.
type jostle struct {
	queue    *flow.Queue
	compiled atomic.Pointer[flow.Compiled]
	now      atomic.Int64
	ranked   bool // calls have all priorities

	mu     sync.Mutex
	passes []clock.Instant // those that were used
}

func (j *jostle) time() clock.Instant { return clock.Instant(j.now.Load()) }

// call goes through the queue once. Some give up, some give back.
func (j *jostle) call(i int) {
	w := unwoken()
	if j.ranked {
		w = w.WithPriority(rule.Priority(i%5) + rule.PrioritySheddable)
	}
	turn, decision := j.queue.Join(j.compiled.Load(), j.time(), 1, time.Hour, w)
	for polls := 0; decision == rule.Wait; polls++ {
		if i%5 == 0 && polls == 3 {
			var left bool
			if turn, left = j.queue.Leave(j.time(), w); left {
				return
			}
			decision = rule.Pass
			break
		}
		j.now.Add(int64(100 * time.Microsecond))
		turn, _, decision = j.queue.Poll(j.time(), w)
	}
	switch {
	case decision != rule.Pass:
	case i%7 == 0:
		j.queue.GiveBack(j.time(), turn)
	default:
		j.mu.Lock()
		j.passes = append(j.passes, turn.Time())
		j.mu.Unlock()
	}
}

func TestQueueKeepsItsSpacingWhateverTheInterleaving(t *testing.T) {
	t.Parallel()
	for name, ranked := range map[string]bool{"one priority": false, "all priorities": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testSpacing(t, ranked)
		})
	}
}

func testSpacing(t *testing.T, ranked bool) {
	t.Helper()
	const callers, calls, spacing = 32, 60, time.Millisecond
	j := &jostle{ranked: ranked}
	j.now.Store(int64(epoch))
	j.compiled.Store(compile(t, throttle(1000, time.Hour), 1))
	j.queue = flow.NewQueue(j.compiled.Load(), epoch)
	var calling sync.WaitGroup
	for c := range callers {
		calling.Go(func() {
			for i := range calls {
				j.call(c + i)
			}
		})
	}
	calling.Wait()

	require.NoError(t, j.queue.CheckWaiters(0))
	slices.Sort(j.passes)
	assert.Greater(t, len(j.passes), callers*calls/2)
	for i := 1; i < len(j.passes); i++ {
		assert.GreaterOrEqual(t, j.passes[i].Sub(j.passes[i-1]), spacing, "pass %d", i)
	}
}

func TestQueueSurvivesReloadsUnderLoad(t *testing.T) {
	t.Parallel()
	const callers, calls = 32, 60
	j := &jostle{ranked: true}
	j.now.Store(int64(epoch))
	j.compiled.Store(compile(t, throttle(1000, time.Hour), 1))
	j.queue = flow.NewQueue(j.compiled.Load(), epoch)
	var calling, reloading sync.WaitGroup
	var done atomic.Bool
	reloading.Go(func() {
		for version := uint64(2); !done.Load(); version++ {
			rule := throttle(float64(version%4)*1000, time.Hour)
			rule.WarmUp.Period = time.Duration(version%3) * time.Second
			j.compiled.Store(compile(t, rule, version))
			j.queue.Adopt(j.compiled.Load(), j.time())
			j.queue.Status(j.time())
			j.queue.RetryAfter(j.time(), 1, time.Second)
		}
	})
	for c := range callers {
		calling.Go(func() {
			for i := range calls {
				j.call(c + i)
			}
		})
	}
	calling.Wait()
	done.Store(true)
	reloading.Wait()
	require.NoError(t, j.queue.CheckWaiters(0))
	used := len(j.passes)
	slices.Sort(j.passes)
	assert.Len(t, slices.Compact(j.passes), used, "no two pass at one instant")
}
