package core_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

// useAllThatWaits makes calls that wait, and all else of an engine that begins a goroutine or waits for a
// time. In a bubble it takes exactly so long as it says.
func useAllThatWaits(t *testing.T, e *core.Engine, second time.Duration) {
	t.Helper()
	require.NoError(t, e.Load(rules.Set{
		Flow:      []flow.Rule{{Resource: "queue", Limit: 2, Window: second, Algorithm: flow.Throttle, MaxWait: time.Hour}},
		Isolation: []isolation.Rule{{Resource: "places", Limit: 1, MaxWait: time.Hour}},
		Breaker:   []breaker.Rule{{Name: "b", Resource: "b", Threshold: 0.5}},
	}))
	for range 3 { // more than may be logged in a second
		require.NoError(t, e.LoadAs("other", rules.Set{Flow: []flow.Rule{{Name: "x", Resource: "x", Limit: 7}}}))
		require.NoError(t, e.LoadAs("other", rules.Set{}))
	}
	time.Sleep(second)
	begun := time.Now()
	for range 5 {
		g, err := e.Entry(t.Context(), "queue")
		require.NoError(t, err)
		g.Exit()
	}
	assert.GreaterOrEqual(t, time.Since(begun), 2*second-time.Millisecond)
	reservation, err := e.Reserve(t.Context(), "queue")
	require.NoError(t, err)
	reservation.Cancel()

	held, err := e.Entry(t.Context(), "places")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), second)
	_, err = e.Entry(ctx, "places")
	require.Error(t, err)
	cancel()
	go func() {
		time.Sleep(second)
		held.Exit()
	}()
	next, err := e.Entry(t.Context(), "places")
	require.NoError(t, err)
	next.Exit()

	require.NoError(t, e.Control(core.Scope{Kind: "breaker", Rule: "b"}, breaker.Open, core.Order{For: 2 * second}))
	_, err = e.Record(t.Context(), second)
	require.NoError(t, err)
	for len(e.Status().Forced) > 0 {
		time.Sleep(second / 10)
	}
}

// A program has one engine, often the default one, and its tests have bubbles.
func TestEngineFromOutsideWaitsInBubbles(t *testing.T) {
	e := core.New(core.Config{Logger: quiet})
	defer e.Close()
	outside := func() { useAllThatWaits(t, e, 10*time.Millisecond) }
	outside()
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			useAllThatWaits(t, e, time.Second)
			synctest.Wait()
			assert.Less(t, time.Since(begun), 20*time.Second)
		})
		outside()
	}
}

// The first that asks for the default engine makes it, which may be a test with a bubble.
func TestEngineMadeInABubbleWaitsElsewhere(t *testing.T) {
	var e *core.Engine
	synctest.Test(t, func(t *testing.T) {
		e = core.New(core.Config{Logger: quiet})
		useAllThatWaits(t, e, time.Second)
	})
	useAllThatWaits(t, e, 10*time.Millisecond)
	synctest.Test(t, func(t *testing.T) { useAllThatWaits(t, e, time.Second) })
}

func TestGoroutinesOfAnEngineRunInsideAndOutsideOfABubbleAtOnce(t *testing.T) {
	e := core.New(core.Config{Logger: quiet})
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, e.Follow(ctx, stalled{}))
	synctest.Test(t, func(t *testing.T) { useAllThatWaits(t, e, time.Second) })
	cancel()
	e.Close()
}

// stalled is a source that delivers nothing.
type stalled struct{}

// Name implements [core.Source].
func (stalled) Name() string { return "stalled" }

// Run implements [core.Source].
func (stalled) Run(ctx context.Context, _ core.Sink) error {
	<-ctx.Done()
	return errors.New("stalled: the end")
}

// A goroutine that comes to wait after the engine was closed does not wait.
func TestNothingWaitsForAClosedEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet})
		require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{{Resource: "r", Limit: 1, Window: time.Hour, Algorithm: flow.Throttle, MaxWait: 24 * time.Hour}}}))
		_, err := e.Entry(t.Context(), "r")
		require.NoError(t, err)
		r, err := e.Reserve(context.Background(), "r")
		require.NoError(t, err)
		e.Close() // the goroutine of the reservation may not have begun to wait
		synctest.Wait()
		_, err = r.Begin()
		require.ErrorIs(t, err, core.ErrClosed)
	})
}
