package flow_test

import (
	"context"
	"errors"
	"fmt"
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

func ExampleNewLimiter() {
	limiter, err := flow.NewLimiter(flow.Rule{Limit: 2, Window: time.Minute, Algorithm: flow.FixedWindow})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(limiter.Allow(), limiter.Allow(), limiter.Allow())
	// Output: true true false
}

func newStandalone(t testing.TB, r flow.Rule) (*flow.Limiter, *clock.Virtual) {
	t.Helper()
	c := clock.NewVirtual(epoch.Time())
	l, err := flow.NewLimiter(r, flow.LimiterOptions{Clock: c})
	require.NoError(t, err)
	return l, c
}

func TestStandaloneLimiterTellsAllMistakes(t *testing.T) {
	_, err := flow.NewLimiter(flow.Rule{
		Name: "mine", Limit: -1, Match: "*", Shared: true, Origin: "a", Shadow: true, Related: "x", Scope: rule.ScopeFleet,
		Follow: flow.Follow{Signal: rule.SignalMemory, From: .1, To: .2},
	})
	require.Error(t, err)
	for _, field := range []string{"match", "perResource", "origin", "shadow", "related", "scope", "follow"} {
		assert.ErrorContains(t, err, fmt.Sprintf("flow \"mine\": %s needs an engine: remove it", field))
	}
	assert.ErrorContains(t, err, "limit is -1")
}

func TestStandaloneWindowIsExact(t *testing.T) {
	for _, algorithm := range []flow.Algorithm{flow.SlidingWindow, flow.FixedWindow, flow.TokenBucket} {
		l, c := newStandalone(t, flow.Rule{Limit: 1000, Algorithm: algorithm})
		for range 3 {
			var passed atomic.Int64
			var callers sync.WaitGroup
			for range 16 {
				callers.Go(func() {
					for range 500 {
						if l.Allow() {
							passed.Add(1)
						}
					}
				})
			}
			callers.Wait()
			assert.EqualValues(t, 1000, passed.Load(), algorithm)
			c.Advance(2 * time.Second)
		}
	}
}

func TestStandaloneLimiterRefuses(t *testing.T) {
	l, c := newStandalone(t, flow.Rule{Name: "mine", Limit: 5, Algorithm: flow.FixedWindow})
	assert.False(t, l.AllowN(0))
	assert.False(t, l.AllowN(-1))
	assert.True(t, l.AllowN(5))
	assert.Equal(t, time.Second, l.RetryAfter(1))
	assert.Equal(t, rule.Never, l.RetryAfter(0))
	assert.EqualValues(t, 0, l.Quota().Remaining)
	err := l.Wait(t.Context())
	require.ErrorIs(t, err, rule.ErrRefused)
	assert.EqualError(t, err, `penstock: refused by flow "mine" (rateLimited)`)
	require.ErrorContains(t, l.WaitN(t.Context(), 0), "must be from 1 to 2147483647")
	c.Advance(time.Second)
	require.NoError(t, l.WaitN(t.Context(), 5))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	c.Advance(time.Second)
	require.ErrorIs(t, l.Wait(ended), context.Canceled)
	assert.EqualValues(t, 5, l.Quota().Remaining, "it has taken nothing")
}

func TestStandaloneLimiterWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := flow.NewLimiter(flow.Rule{Limit: 10, Algorithm: flow.Throttle, MaxWait: time.Second})
		require.NoError(t, err)
		begin := time.Now()
		var mu sync.Mutex
		var passed []time.Duration
		refused := 0
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() {
				err := l.Wait(t.Context())
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, rule.ErrRefused) {
					refused++
				} else if err == nil {
					passed = append(passed, time.Since(begin))
				}
			})
		}
		callers.Wait()
		require.Len(t, passed, 11)
		assert.Equal(t, 9, refused)
		for i, at := range passed {
			assert.InDelta(t, float64(i)*.1, at.Seconds(), 1e-6)
		}
	})
}

func TestStandaloneLimiterWaitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := flow.NewLimiter(flow.Rule{Limit: 1, Algorithm: flow.Throttle, MaxWait: time.Minute})
		require.NoError(t, err)
		require.True(t, l.Allow())
		short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		begin := time.Now()
		require.ErrorIs(t, l.Wait(short), rule.ErrRefused)
		assert.Zero(t, time.Since(begin), "at once: its turn comes too late")

		ended, cancel := context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, cancel)
		require.ErrorIs(t, l.Wait(ended), context.Canceled)
		assert.Equal(t, 300*time.Millisecond, time.Since(begin))
		require.NoError(t, l.Wait(t.Context()))
		assert.Equal(t, time.Second, time.Since(begin), "who has left keeps no turn")
	})
}

func TestReservedTokens(t *testing.T) {
	t.Run("of a window", func(t *testing.T) {
		l, c := newStandalone(t, flow.Rule{Limit: 5, Algorithm: flow.FixedWindow})
		b := l.Reserve(4)
		assert.True(t, b.OK())
		assert.Zero(t, b.Delay())
		late := l.Reserve(2)
		assert.False(t, late.OK())
		assert.Equal(t, time.Second, late.Delay())
		late.Cancel()
		b.Cancel()
		b.Cancel()
		assert.EqualValues(t, 5, l.Quota().Remaining)
		c.Advance(time.Second)
		assert.True(t, l.AllowN(5))
	})
	t.Run("of a throttle", func(t *testing.T) {
		l, c := newStandalone(t, flow.Rule{Limit: 10, Algorithm: flow.Throttle, MaxWait: 250 * time.Millisecond})
		var delays []time.Duration
		for range 3 {
			b := l.Reserve(1)
			require.True(t, b.OK())
			delays = append(delays, b.Delay())
		}
		assert.Equal(t, []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond}, delays)
		none := l.Reserve(1)
		assert.False(t, none.OK())
		assert.Equal(t, 50*time.Millisecond, none.Delay())
		c.Advance(100 * time.Millisecond)
		last := l.Reserve(1)
		assert.Equal(t, 200*time.Millisecond, last.Delay())
		last.Cancel()
		again := l.Reserve(1)
		assert.Equal(t, 200*time.Millisecond, again.Delay(), "nothing later was granted")
	})
	t.Run("of a bucket", func(t *testing.T) {
		l, c := newStandalone(t, flow.Rule{Limit: 10, Algorithm: flow.TokenBucket, Burst: 2, MaxWait: time.Second})
		require.True(t, l.AllowN(2))
		b := l.Reserve(2)
		require.True(t, b.OK())
		assert.Equal(t, 200*time.Millisecond, b.Delay())
		c.Advance(200 * time.Millisecond)
		assert.Zero(t, b.Delay())
		assert.False(t, l.Allow())
		b.Cancel()
		assert.True(t, l.AllowN(2))
	})
	l, _ := newStandalone(t, flow.Rule{Limit: 10})
	b := l.Reserve(0)
	assert.False(t, b.OK())
	assert.Equal(t, rule.Never, b.Delay())
}

func TestStandaloneLimiterAllocatesNothing(t *testing.T) {
	for _, r := range []flow.Rule{
		{Limit: 1e9},
		{},
		{Limit: 1e9, Algorithm: flow.TokenBucket},
		{Limit: 1e9, Algorithm: flow.Throttle, MaxWait: time.Second},
		{Limit: .001, Algorithm: flow.Throttle, MaxWait: time.Second},
	} {
		l, c := newStandalone(t, r)
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			c.Advance(1000)
			_ = l.Allow()
			b := l.Reserve(1)
			b.Cancel()
		}), "%+v", r)
	}
}
