package core_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

// poolWithin are rules of a service whose inbound calls ask a pool, which does one call after the
// other.
func poolWithin() rules.Set {
	return rules.Set{
		Adaptive:  []adaptive.Rule{{Name: "shed"}},
		Isolation: []isolation.Rule{{Resource: "pool", Limit: 1, MaxWait: time.Minute, MaxQueue: 100}},
	}
}

// underWayBy returns how many calls an adaptive rule counts as under way.
func underWayBy(e *core.Engine, resource string) float64 {
	for _, r := range e.Resource(resource).Snapshot().Rules {
		if r.Kind == "adaptive" {
			return r.Gauges[1]
		}
	}
	return -1
}

// sleep is a call of the pool, or what it does.
func sleep(context.Context) error {
	time.Sleep(100 * time.Millisecond)
	return nil
}

// A call is under way for an adaptive rule only while the calls within it do not wait: however they
// are made, for whatever rule they wait, whether they get what they wait for, and whoever ends first.
func TestCallWithinWhichAnotherWaitsIsNotUnderWay(t *testing.T) {
	throttled := poolWithin()
	throttled.Isolation = nil
	throttled.Flow = []flow.Rule{{Resource: "pool", Limit: 10, Algorithm: flow.Throttle, MaxWait: time.Minute}}
	limited := poolWithin()
	limited.Isolation = nil
	limited.Adaptive = append(limited.Adaptive, adaptive.Rule{Resource: "pool", InitialLimit: 1, MaxLimit: 1, MaxDelay: time.Minute})
	shadow := poolWithin()
	shadow.Adaptive[0].Shadow = true
	settled := poolWithin()
	settled.Isolation = append(settled.Isolation, isolation.Rule{Resource: "page", Limit: 50})
	for name, set := range map[string]rules.Set{
		"isolation": poolWithin(), "throttle": throttled, "adaptive": limited, "under a shadow": shadow, "beside another rule": settled,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := core.New(core.Config{Logger: quiet})
				defer e.Close()
				require.NoError(t, e.Load(set))
				inbound := core.Inbound()
				for how, page := range []func() error{
					func() error { return e.Do(t.Context(), "pool", sleep) }, // calls have waited from now on
					func() error {
						return e.Do(t.Context(), "page", func(ctx context.Context) error { return e.Do(ctx, "pool", sleep) }, inbound)
					},
					func() error {
						guard, err := e.Entry(t.Context(), "page", inbound)
						require.NoError(t, err)
						defer guard.Exit()
						ctx, cancel := context.WithTimeout(guard.Context(t.Context()), 10*time.Second)
						defer cancel()
						return e.Do(ctx, "pool", sleep)
					},
					func() error {
						return e.Do(t.Context(), "page", func(ctx context.Context) error {
							return e.Do(ctx, "block", func(ctx context.Context) error { return e.Do(ctx, "pool", sleep) })
						}, inbound)
					},
				} {
					var all sync.WaitGroup
					for range 3 {
						all.Go(func() { assert.NoError(t, page()) })
					}
					synctest.Wait()
					time.Sleep(10 * time.Millisecond)
					assert.LessOrEqual(t, underWayBy(e, "page"), 1., "calls of which one does something, %d", how)
					all.Wait()
					assert.Zero(t, underWayBy(e, "page"))
				}
			})
		})
	}
}

// Calls that are within one together, give up, or outlive it leave nothing behind.
func TestCallsWithinAreCountedOnceWhateverTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet})
		defer e.Close()
		require.NoError(t, e.Load(poolWithin()))
		busy, err := e.Entry(t.Context(), "pool")
		require.NoError(t, err)
		ended, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.Error(t, e.Do(ended, "pool", sleep), "calls have waited from now on")

		outer, err := e.Entry(t.Context(), "page", core.Inbound(), core.Tokens(2))
		require.NoError(t, err)
		ctx := outer.Context(t.Context())
		patient, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() { assert.ErrorIs(t, e.Do(patient, "pool", sleep), context.DeadlineExceeded) })
		all.Go(func() { assert.NoError(t, e.Do(outer.Context(ctx), "pool", sleep)) })
		synctest.Wait()
		assert.Zero(t, underWayBy(e, "page"))
		time.Sleep(60 * time.Millisecond)
		assert.Zero(t, underWayBy(e, "page"), "one of them still waits")
		outer.Settle(5)
		outer.MarkLongLived()
		outer.Exit()
		assert.Zero(t, underWayBy(e, "page"))
		busy.Exit()
		all.Wait()
		assert.NoError(t, e.Do(ctx, "pool", sleep), "the call that it was within has ended")
		assert.Zero(t, underWayBy(e, "page"))
		assert.Same(t, t.Context(), outer.Context(t.Context()), "an ended call has no others within it")
	})
}

// What calls within a call waited for is no response time of it.
func TestWaitsOfCallsWithinAreNoResponseTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet})
		defer e.Close()
		require.NoError(t, e.Load(poolWithin()))
		var all sync.WaitGroup
		for range 200 {
			for range 5 { // half a second of work at once
				all.Go(func() {
					assert.NoError(t, e.Do(t.Context(), "page", func(ctx context.Context) error { return e.Do(ctx, "pool", sleep) }, core.Inbound()))
				})
			}
			time.Sleep(500 * time.Millisecond)
		}
		all.Wait()
		var baseline float64
		for _, r := range e.Resource("page").Snapshot().Rules {
			if r.Kind == "adaptive" {
				baseline = r.Gauges[3]
			}
		}
		assert.InDelta(t, 0.1, baseline, 0.01, "seconds")
	})
}

// Where nothing has waited, the context of a call is that of its caller, and calls allocate nothing.
func TestContextOfACallCostsNothingWhereNothingWaits(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	e := core.New(core.Config{Logger: quiet})
	defer e.Close()
	require.NoError(t, e.Load(poolWithin()))
	ctx := context.Background()
	nothing := func(context.Context) error { return nil }
	page := func(ctx context.Context) error { return e.Do(ctx, "pool", nothing) }
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = e.Do(ctx, "page", page, core.Inbound()) }))
	guard, err := e.Entry(ctx, "page", core.Inbound())
	require.NoError(t, err)
	assert.Equal(t, ctx, guard.Context(ctx))
	guard.Exit()
	var none core.Guard
	assert.Equal(t, ctx, none.Context(ctx))
}

// A call that is cancelled while another waits within it is not under way any more, nor is it counted
// when that one goes on.
func TestCallIsCancelledWhileAnotherWaitsWithinIt(t *testing.T) {
	for name, opts := range map[string][]core.Option{"carried": {core.Inbound()}, "in a record": {core.Inbound(), core.LongLived()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := core.New(core.Config{Logger: quiet})
				defer e.Close()
				require.NoError(t, e.Load(poolWithin()))
				busy, err := e.Entry(t.Context(), "pool")
				require.NoError(t, err)
				short, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				require.ErrorIs(t, e.Do(short, "pool", sleep), context.DeadlineExceeded, "calls have waited from now on")

				guard, err := e.Entry(t.Context(), "page", opts...)
				require.NoError(t, err)
				ctx := guard.Context(t.Context())
				require.NotEqual(t, t.Context(), ctx)
				go func() { _ = e.Do(ctx, "pool", sleep) }()
				synctest.Wait()
				require.Zero(t, underWayBy(e, "page"))
				guard.Cancel()
				busy.Exit()
				time.Sleep(time.Second)
				require.Zero(t, underWayBy(e, "page"))
				assert.Zero(t, e.Resource("page").Snapshot().Passed)
				guard, err = e.Entry(t.Context(), "page", opts...)
				require.NoError(t, err)
				require.InDelta(t, 1, underWayBy(e, "page"), 0)
				guard.Exit()
			})
		})
	}
}
