package memory_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/fleet"
)

func TestValuesEndByThemselves(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for i := range 5000 {
		terms := fleet.Terms{Key: fmt.Sprint("k", i), Limit: 10, Window: time.Second, Burst: 1, Buckets: 2}
		for _, operation := range []fleet.Operation{fleet.LeaseBucket, fleet.LeaseWindow, fleet.AskFixedWindow, fleet.AskSlidingLog} {
			assert.Equal(t, int64(1), h.do(fleet.Request{Operation: operation, Terms: terms, Want: 1, Keep: 100 * ms}).Granted)
		}
	}
	assert.Equal(t, 20_000, h.Len())
	h.clock.Advance(1600 * ms)
	assert.Zero(t, h.Len())
}

func TestRequestThatIsNotValidIsAnsweredWithAllMistakes(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	got := h.do(fleet.Request{Operation: 99, Terms: fleet.Terms{Key: "k", Limit: -1, Burst: -2}, Back: -1, Owed: -1, Keep: -1, Want: 1 << 60})
	for _, part := range []string{"operation 99", "limit is -1", "burst is -2", "window is 0s", "back is", "owed is", "keep (-1ns)", "want is"} {
		assert.ErrorContains(t, got.Err, part)
	}
	got = h.do(fleet.Request{Operation: fleet.LeaseWindow, Terms: fleet.Terms{Window: time.Second}})
	assert.ErrorContains(t, got.Err, "key is missing")
	assert.ErrorContains(t, got.Err, "buckets is 0")
}

func TestStoreFailsWithTheContext(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	replies := make([]fleet.Reply, 1)
	h.Exchange(ctx, []fleet.Request{{Terms: perSecond, Want: 1}}, replies)
	_, announced := h.Announce(ctx, fleet.Instance{ID: "a"}, false)
	for _, err := range []error{replies[0].Err, announced, h.Leave(ctx, "a")} {
		require.ErrorIs(t, err, fleet.ErrUnavailable)
		require.ErrorIs(t, err, context.Canceled)
	}
	assert.Zero(t, h.Len())
}

func TestInstancesAreForgottenAfterTheirLife(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	announce := func(id string, demand float64) fleet.Fleet {
		known, err := h.Announce(t.Context(), fleet.Instance{ID: id, Limits: []fleet.Use{{Key: "k", Demand: demand}}}, true)
		require.NoError(t, err)
		return known
	}
	announce("b", 1)
	h.clock.Advance(3 * time.Second)
	assert.Equal(t, fleet.Fleet{Count: 2, IsNew: true, Instances: []fleet.Instance{
		{ID: "a", Limits: []fleet.Use{{Key: "k", Demand: 2}}}, {ID: "b", Limits: []fleet.Use{{Key: "k", Demand: 1}}},
	}}, announce("a", 2))
	h.clock.Advance(2 * time.Second)
	known := announce("a", 3)
	assert.Equal(t, 1, known.Count, "b is gone")
	assert.False(t, known.IsNew)
	assert.True(t, announce("b", 1).IsNew, "it comes back")
	require.NoError(t, h.Leave(t.Context(), "b"))
	announce("c", 1)
	require.NoError(t, h.Leave(t.Context(), "c"))
	assert.Equal(t, 1, announce("a", 3).Count)
	announce("c", 1)
	h.Shift(-time.Hour)
	assert.Equal(t, 2, announce("a", 3).Count)
	h.clock.Advance(5 * time.Second)
	assert.Equal(t, 1, announce("a", 3).Count, "the clock has jumped back, c is gone all the same")
}

// Many goroutines ask at once; together they get what one would get.
func TestLimitsHoldUnderManyGoroutines(t *testing.T) {
	t.Parallel()
	for operation := range fleet.AskThrottle + 1 {
		h := newHarness(t)
		terms := fleet.Terms{Key: "k", Limit: 1000, Window: time.Second, Burst: 1000, Buckets: 10}
		var granted atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 500 {
					granted.Add(h.do(fleet.Request{Operation: operation, Terms: terms, Want: 3}).Granted)
				}
			})
		}
		all.Wait()
		assert.InDelta(t, 999.5, granted.Load(), .5, "operation %d", operation)
	}
}
