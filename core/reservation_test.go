package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestReservationsOfAThrottleAreSpacedAndCancelledOnesGoToOthers(t *testing.T) {
	e, c := newEngine(t)
	load(t, e, throttle("r", 1, time.Minute))
	reserve := func() *core.Reservation {
		r, err := e.Reserve(context.Background(), "r")
		require.NoError(t, err)
		return r
	}
	first, second, third := reserve(), reserve(), reserve()
	assert.Equal(t, []time.Duration{0, time.Second, 2 * time.Second}, []time.Duration{first.Delay(), second.Delay(), third.Delay()})
	third.Cancel()
	third.Cancel()
	again := reserve()
	assert.Equal(t, 2*time.Second, again.Delay(), "in place of the one that was cancelled")
	again.Cancel()

	guard, err := first.Begin()
	require.NoError(t, err)
	guard.Exit()
	c.Advance(time.Second)
	assert.Zero(t, second.Delay())
	other := reserve()
	assert.Equal(t, time.Second, other.Delay(), "the second has its turn, though nobody has asked for it")
	other.Cancel()
	guard, err = second.Begin()
	require.NoError(t, err)
	assert.EqualValues(t, 1, e.Resource("r").Snapshot().InFlight)
	guard.Exit()
	second.Cancel() // too late: it does nothing
	_, err = second.Begin()
	require.ErrorIs(t, err, core.ErrInvalid)

	snapshot := e.Resource("r").Snapshot()
	assert.EqualValues(t, 2, snapshot.Passed)
	assert.Zero(t, snapshot.InFlight)
	assert.Zero(t, snapshot.Waiting)
}

// A reservation whose caller is late keeps nobody from passing.
func TestCallsPassBehindAReservationThatIsNotBegun(t *testing.T) {
	e, c := newEngine(t)
	load(t, e, throttle("r", 1, time.Minute))
	for range 2 {
		_, err := e.Reserve(context.Background(), "r")
		require.NoError(t, err)
	}
	passed := make(chan error)
	go func() {
		guard, err := e.Entry(context.Background(), "r")
		guard.Exit()
		passed <- err
	}()
	for {
		select {
		case err := <-passed:
			require.NoError(t, err)
			return
		case <-time.After(time.Millisecond):
			c.Advance(100 * time.Millisecond)
		}
	}
}

func TestReservationTakesAtOnceWhatNeedsNoWait(t *testing.T) {
	e, _ := newEngine(t)
	require.NoError(t, e.Load(rules.Set{
		Flow: []flow.Rule{{Resource: "r", Limit: 2}}, Isolation: []isolation.Rule{{Resource: "r", Limit: 1}},
	}))
	r, err := e.Reserve(context.Background(), "r", core.Tokens(2))
	require.NoError(t, err)
	assert.Zero(t, r.Delay())
	_, err = e.Reserve(context.Background(), "r")
	var block *core.BlockError
	require.ErrorAs(t, err, &block)
	r.Cancel()
	guard, err := e.Entry(context.Background(), "r", core.Tokens(2))
	require.NoError(t, err, "all of it was given back")
	guard.Exit()
	assert.EqualValues(t, 1, e.Resource("r").Snapshot().Passed, "a reservation that was cancelled is no call")
}

func TestReservationIsRefusedWhereEntryIs(t *testing.T) {
	e, _ := newEngine(t)
	load(t, e, throttle("r", 1, time.Second))
	for range 2 {
		_, err := e.Reserve(context.Background(), "r")
		require.NoError(t, err)
	}
	_, err := e.Reserve(context.Background(), "r")
	require.ErrorIs(t, err, core.ErrBlocked)
	_, err = e.Reserve(context.Background(), "r", core.Tokens(0))
	require.ErrorIs(t, err, core.ErrInvalid)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = e.Reserve(ended, "r")
	require.ErrorIs(t, err, context.Canceled)
	e.Close()
	_, err = e.Reserve(context.Background(), "r")
	require.ErrorIs(t, err, core.ErrClosed)
}

func TestDecisionHasTheLimitThatACallIsNearestTo(t *testing.T) {
	e, _ := newEngine(t)
	require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{
		{Name: "wide", Resource: "r", Limit: 100},
		{Name: "narrow", Resource: "r", Limit: 3, Algorithm: flow.FixedWindow, Window: time.Minute},
		{Name: "shadow", Resource: "r", Limit: 1, Shadow: true},
	}}))
	for left := int64(2); left >= 0; left-- {
		guard, d, err := e.Decide(context.Background(), "r")
		require.NoError(t, err)
		require.Nil(t, d.Refusal)
		require.Len(t, d.Limits, 2)
		limit := d.Limit()
		assert.Equal(t, "narrow", limit.Name)
		assert.InDelta(t, 3, limit.Quota.Limit, 0)
		assert.Equal(t, left, limit.Quota.Remaining)
		assert.Positive(t, limit.Quota.Reset)
		assert.Equal(t, e.Revision(), d.Revision)
		guard.Exit()
	}
	guard, d, err := e.Decide(context.Background(), "r")
	require.NoError(t, err)
	guard.Exit() // does nothing
	require.NotNil(t, d.Refusal)
	assert.Equal(t, "narrow", d.Limit().Name)
	assert.Zero(t, d.Limit().Quota.Remaining)
	assert.Equal(t, d.Refusal.RetryAfter, d.RetryAfter)
	assert.Positive(t, d.RetryAfter)

	guard, d, err = e.Decide(context.Background(), "free")
	require.NoError(t, err)
	assert.Nil(t, d.Limit())
	guard.Exit()
	_, _, err = e.Decide(context.Background(), "r", core.Tokens(0))
	require.ErrorIs(t, err, core.ErrInvalid)
}

// asking counts what it is asked.
type asking struct {
	toy
	acquired, read int
}

func (l *asking) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	l.acquired++
	return l.toy.Acquire(c)
}

func (l *asking) RetryAfter(c rule.Call) time.Duration {
	l.read++
	return l.toy.RetryAfter(c)
}

func TestDecisionAsksARuleOnce(t *testing.T) {
	for _, decision := range []rule.Decision{rule.Pass, rule.Block} {
		e, _ := newEngine(t)
		l := &asking{toy: toy{decide: always(decision)}}
		e.Impose("r", toyRule("asking", l))
		guard, _, err := e.Decide(context.Background(), "r")
		require.NoError(t, err)
		guard.Exit()
		assert.Equal(t, 1, l.acquired)
		assert.LessOrEqual(t, l.read, 1, "for the time of a refusal")
	}
}
