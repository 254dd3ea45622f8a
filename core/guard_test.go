package core_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func TestAResourceWithoutRulesPassesAndIsCounted(t *testing.T) {
	e, c := newEngine(t)
	guard, err := e.Entry(t.Context(), "r")
	if err != nil { // a true nil error, not a typed one
		t.Fatal(err)
	}
	assert.EqualValues(t, 1, e.Resource("r").Snapshot().InFlight)

	c.Advance(20 * time.Millisecond)
	guard.Exit()

	s := e.Resource("r").Snapshot()
	assert.EqualValues(t, 0, s.InFlight)
	assert.EqualValues(t, 1, s.Passed)
	assert.EqualValues(t, 1, s.Completed)
	assert.Zero(t, s.Failed+s.Blocked)
	assert.Equal(t, 20*time.Millisecond, s.ResponseTime)
	assert.InEpsilon(t, 20*time.Millisecond, s.ResponseTimes.Quantile(0.5), 0.05)
}

func TestRefusalTellsWhatRefusedAndWhenToTryAgain(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Name: "create-qps", Resource: "orders:create", Limit: 1})
	require.Equal(t, 1, enter(e, "orders:create", 1))

	guard, err := e.Entry(t.Context(), "orders:create")
	require.ErrorIs(t, err, core.ErrBlocked)
	var blocked *core.BlockError
	require.ErrorAs(t, err, &blocked)
	assert.Equal(t, core.BlockError{
		Resource: "orders:create", Kind: rules.KindFlow, Rule: "create-qps", RetryAfter: time.Second,
	}, *blocked)
	assert.EqualError(t, err, `penstock: "orders:create" blocked by flow "create-qps", retry after 1s`)

	guard.Fail(errors.New("ignored"))
	guard.Exit() // of a call that was refused: nothing to end
	assert.EqualValues(t, 0, e.Resource("orders:create").Snapshot().InFlight)
	assert.EqualValues(t, 1, e.Resource("orders:create").Snapshot().Blocked)
}

func TestOnlyTheFirstExitCounts(t *testing.T) {
	e, _ := newEngine(t)
	guard, err := e.Entry(t.Context(), "r")
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(guard.Exit)
	}
	wg.Wait()
	guard.Fail(errors.New("too late"))
	guard.Exit()

	s := e.Resource("r").Snapshot()
	assert.EqualValues(t, 0, s.InFlight)
	assert.EqualValues(t, 1, s.Completed)
	assert.EqualValues(t, 0, s.Failed)
}

func TestFailuresAreCounted(t *testing.T) {
	e, _ := newEngine(t)
	for _, failure := range []error{nil, errors.New("first"), errors.New("second")} {
		guard, err := e.Entry(t.Context(), "r")
		require.NoError(t, err)
		guard.Fail(failure)
		guard.Exit()
	}
	s := e.Resource("r").Snapshot()
	assert.EqualValues(t, 3, s.Completed)
	assert.EqualValues(t, 2, s.Failed)
}

func TestDo(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Resource: "closed", Limit: 0})
	broken := errors.New("broken")

	require.NoError(t, e.Do(t.Context(), "r", func(context.Context) error { return nil }))
	require.ErrorIs(t, e.Do(t.Context(), "r", func(context.Context) error { return broken }), broken)
	require.PanicsWithValue(t, "oops", func() {
		_ = e.Do(t.Context(), "r", func(context.Context) error { panic("oops") })
	})
	require.ErrorIs(t, e.Do(t.Context(), "closed", func(context.Context) error {
		t.Error("a refused function ran")
		return nil
	}), core.ErrBlocked)

	s := e.Resource("r").Snapshot()
	assert.EqualValues(t, 0, s.InFlight)
	assert.EqualValues(t, 3, s.Completed)
	assert.EqualValues(t, 2, s.Failed, "the error and the panic")
}

func TestCallReturnsTheValue(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Resource: "closed", Limit: 0})
	answer := func(context.Context) (int, error) { return 42, nil }

	value, err := core.Call(t.Context(), e, "r", answer)
	require.NoError(t, err)
	assert.Equal(t, 42, value)

	value, err = core.Call(t.Context(), e, "closed", answer)
	require.ErrorIs(t, err, core.ErrBlocked)
	assert.Zero(t, value)
}

func TestEnginesShareNothing(t *testing.T) {
	one, _ := newEngine(t, flow.Rule{Resource: "r", Limit: 1})
	other, _ := newEngine(t, flow.Rule{Resource: "r", Limit: 2})
	assert.Equal(t, 1, enter(one, "r", 5))
	assert.Equal(t, 2, enter(other, "r", 5))

	one.Close()
	assert.Equal(t, 0, enter(one, "r", 1))
	assert.EqualValues(t, 3, other.Resource("r").Snapshot().Blocked)
}

func TestAClosedEngineLetsNothingThrough(t *testing.T) {
	e, _ := newEngine(t)
	guard, err := e.Entry(t.Context(), "r")
	require.NoError(t, err)
	handle := e.Resource("r")

	e.Close()
	e.Close()

	_, err = e.Entry(t.Context(), "r")
	require.ErrorIs(t, err, core.ErrClosed)
	_, err = handle.Entry(t.Context())
	require.ErrorIs(t, err, core.ErrClosed)
	require.ErrorIs(t, e.Load(rules.Set{}), core.ErrClosed)
	require.ErrorIs(t, e.Follow(t.Context(), &memory{}), core.ErrClosed)

	guard.Exit()
	assert.EqualValues(t, 0, handle.Snapshot().InFlight)
}

func TestTokens(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Resource: "r", Limit: 10})
	assert.Equal(t, 2, enter(e, "r", 5, core.Tokens(4)))
	assert.Equal(t, 2, enter(e, "r", 5))
	most := math.MaxInt32
	for _, n := range []int{0, -1, most + 1} { // the last is negative where int has 32 bits
		_, err := e.Entry(t.Context(), "r", core.Tokens(n))
		require.ErrorIs(t, err, core.ErrInvalid)
		require.NotErrorIs(t, err, core.ErrBlocked)
	}
}
