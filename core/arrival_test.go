package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

func TestAnArrivalSaysWhatItWaitsFor(t *testing.T) {
	e, c := newEngine(t, flow.Rule{Resource: "r", Limit: 10, Algorithm: flow.Throttle, MaxWait: time.Second})
	woken := make([]int, 3)
	arrivals := make([]*core.Arrival, 3)
	for i := range arrivals {
		arrivals[i] = e.Arrive(t.Context(), "r", func() { woken[i]++ })
	}
	_, done := arrivals[0].Proceed()
	require.True(t, done)

	after, done := arrivals[1].Proceed()
	require.False(t, done)
	assert.Equal(t, 100*time.Millisecond, after, "the first in the queue")
	after, done = arrivals[2].Proceed()
	require.False(t, done)
	assert.Zero(t, after, "waits to be woken")

	c.Advance(100 * time.Millisecond)
	_, done = arrivals[1].Proceed()
	require.True(t, done)
	assert.Equal(t, 1, woken[2], "it has become the first")
	after, done = arrivals[2].Proceed()
	require.False(t, done)
	assert.Equal(t, 100*time.Millisecond, after)
	c.Advance(after)
	_, done = arrivals[2].Proceed()
	require.True(t, done)

	for _, a := range arrivals {
		guard, err := a.Result()
		require.NoError(t, err)
		guard.Exit()
	}
	s := e.Resource("r").Snapshot()
	assert.EqualValues(t, 3, s.Passed)
	assert.EqualValues(t, 2, s.Waited)
	assert.Zero(t, s.InFlight)
	assert.Zero(t, s.Waiting)
}

func TestAnArrivalIsRefusedAsACallIs(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Resource: "r", Limit: 1, Origin: "mobile"})
	for i := range 3 {
		a := e.Arrive(t.Context(), "r", func() {}, core.Origin("mobile"))
		_, done := a.Proceed()
		require.True(t, done)
		_, err := a.Result()
		assert.Equal(t, i > 0, err != nil)
	}
	a := e.Arrive(t.Context(), "r", func() {}, core.Tokens(0))
	_, done := a.Proceed()
	require.True(t, done)
	_, err := a.Result()
	require.ErrorIs(t, err, core.ErrInvalid)
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

// An arrival whose call has ended stands for another one as a new one would.
func TestAnArrivalIsUsedAgain(t *testing.T) {
	e, c := newEngine(t, flow.Rule{Resource: "r", Limit: 1, Origin: "mobile"}, throttle("queue", 1, time.Minute))
	again := new(core.Arrival)
	decide := func(of *core.Arrival, resource string, opts ...core.Option) (done bool, err error) {
		of.Arrive(t.Context(), e, resource, func() {}, opts...)
		_, done = of.Proceed()
		guard, err := of.Result()
		if done {
			guard.Exit()
		}
		return done, err
	}
	_, err := decide(again, "r", core.Origin("mobile"))
	require.NoError(t, err)
	_, err = decide(again, "r", core.Origin("mobile"))
	require.Error(t, err)
	_, err = decide(again, "r")
	require.NoError(t, err, "it is no longer the call of mobile, nor refused")
	_, err = decide(again, "r", core.Tokens(0))
	require.ErrorIs(t, err, core.ErrInvalid)
	_, err = decide(again, "queue")
	require.NoError(t, err)
	done, _ := decide(again, "queue")
	require.False(t, done, "it waits")
	c.Advance(time.Second)
	_, done = again.Proceed()
	require.True(t, done)
	guard, err := again.Result()
	require.NoError(t, err)
	guard.Exit()
	for name, passed := range map[string]int{"r": 2, "queue": 2} {
		s := e.Resource(name).Snapshot()
		assert.EqualValues(t, passed, s.Passed, name)
		assert.Zero(t, s.InFlight, name)
		assert.Zero(t, s.Waiting, name)
	}
}
