package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// A waiter arms one timer. One that armed it anew could miss that
// the clock was moved in between.
func TestAClockThatIsMovedOnceATimerIsArmedEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, c := newEngine(t, throttle("r", 2, time.Minute))
		require.Equal(t, 1, enter(e, "r", 1))
		passed := false
		go func() {
			guard, err := e.Entry(context.Background(), "r")
			assert.NoError(t, err)
			guard.Exit()
			passed = true
		}()
		synctest.Wait()
		require.Equal(t, 1, c.Timers())
		c.Advance(500 * time.Millisecond)
		synctest.Wait()
		assert.True(t, passed)
	})
}

// A reservation that was granted under the set before is worth nothing under one whose
// queue refuses every call: either set keeps the second call from passing now.
func TestAReservationOfAnEarlierSetDoesNotPassARuleThatBlocks(t *testing.T) {
	first := flow.Rule{Name: "first", Resource: "r", Limit: 1e6, Algorithm: flow.Throttle, MaxWait: time.Minute}
	second := flow.Rule{Name: "second", Resource: "r", Limit: 1, Algorithm: flow.Throttle, MaxWait: time.Minute}
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
func TestARuleThatBecomesOneForOthersRefusesNoWaiter(t *testing.T) {
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
