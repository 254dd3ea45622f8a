package penstock_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

func TestSetDefaultReplacesTheEngineThatTheFunctionsUse(t *testing.T) {
	before := penstock.Default()
	defer penstock.SetDefault(before)
	mine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer mine.Close()
	penstock.SetDefault(mine)
	assert.Same(t, mine, penstock.Default())
	require.NoError(t, mine.LoadAs("library", penstock.Rules{Flow: []flow.Rule{{Resource: "set-default", Limit: 0}}}))
	_, err := penstock.Entry(t.Context(), "set-default")
	require.ErrorIs(t, err, penstock.ErrBlocked)
	guard, err := before.Entry(t.Context(), "set-default")
	require.NoError(t, err, "the engine before has no such rule")
	guard.Exit()
	assert.Panics(t, func() { penstock.SetDefault(nil) })
}

func TestOptionsAreThoseOfTheDefaultEngine(t *testing.T) {
	before := penstock.Default()
	defer penstock.SetDefault(before)
	mine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer mine.Close()
	penstock.SetDefault(mine)
	require.NoError(t, penstock.Load(penstock.Rules{Flow: []flow.Rule{
		{Resource: "within", Limit: 10, Window: time.Hour, Algorithm: flow.TokenBucket}, {Name: "shadow", Resource: "within", Limit: 0, Shadow: true},
	}}))
	ctx := t.Context()
	assert.Nil(t, core.GuardFrom(ctx))
	err := penstock.Do(ctx, "within", func(ctx context.Context) error {
		assert.Equal(t, core.Settlement{Known: true, Left: 7}, core.Settle(ctx, 3))
		assert.Equal(t, "shadow", core.GuardFrom(ctx).WouldBlock().Rule)
		return nil
	}, penstock.Tokens(2), penstock.String("user", "a"), penstock.Int("item", 1), penstock.Bool("trial", true), penstock.Origin("mobile"),
		penstock.Inbound(), penstock.NoWait(), penstock.Priority(rule.PriorityHigh))
	require.NoError(t, err)
}

func TestDefaultIsOneEngineForAllGoroutines(t *testing.T) {
	var callers sync.WaitGroup
	engines := make([]*core.Engine, 16)
	for i := range engines {
		callers.Go(func() { engines[i] = penstock.Default() })
	}
	callers.Wait()
	for _, e := range engines {
		assert.Same(t, penstock.Default(), e)
	}
}

// Tests of a program share the default engine, whichever of them makes it, and some have bubbles.
func TestDefaultEngineIsUsedInsideAndOutsideOfBubbles(t *testing.T) {
	before := penstock.Default()
	defer penstock.SetDefault(before)
	wait := func(t *testing.T) {
		t.Helper()
		require.NoError(t, penstock.Load(penstock.Rules{Flow: []penstock.FlowRule{{
			Resource: "bubbles", Limit: 1000, Window: time.Minute, Algorithm: flow.Throttle, MaxWait: time.Second,
		}}}))
		begun := time.Now()
		for range 3 {
			guard, err := penstock.Entry(t.Context(), "bubbles")
			require.NoError(t, err)
			guard.Exit()
		}
		assert.GreaterOrEqual(t, time.Since(begun), 110*time.Millisecond)
		require.NoError(t, penstock.Load(penstock.Rules{}))
	}
	wait(t)
	synctest.Test(t, wait)
	synctest.Test(t, func(t *testing.T) {
		penstock.SetDefault(core.New(core.Config{}))
		wait(t)
	})
	wait(t)
	synctest.Test(t, wait)
}
