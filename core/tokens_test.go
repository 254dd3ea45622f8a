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

func TestTokensOfPassedAndBlockedCallsAreCounted(t *testing.T) {
	engine, _ := newEngine(t, flow.Rule{Resource: "llm", Limit: 10})
	totals := func() core.ResourceSnapshot { return engine.Resource("llm").Snapshot() }
	guard, err := engine.Entry(t.Context(), "llm", core.Tokens(7))
	require.NoError(t, err)
	_, err = engine.Entry(t.Context(), "llm", core.Tokens(4))
	require.ErrorIs(t, err, core.ErrBlocked)
	_, err = engine.Entry(t.Context(), "llm")
	require.NoError(t, err)
	assert.EqualValues(t, 8, totals().PassedTokens)
	assert.EqualValues(t, 4, totals().BlockedTokens)
	guard.Settle(2)
	guard.Exit()
	assert.EqualValues(t, 8, totals().PassedTokens, "a counter does not go down")
}

func TestTokensOfCallsThatWaitAreCountedWhenTheyPassOrAreBlocked(t *testing.T) {
	engine, virtual := newEngine(t, flow.Rule{
		Resource: "mail", Limit: 1, Algorithm: flow.Throttle, MaxWait: 3 * time.Second,
	})
	_, err := engine.Entry(t.Context(), "mail", core.Tokens(2))
	require.NoError(t, err)
	_, err = engine.Entry(t.Context(), "mail", core.Tokens(50), core.NoWait())
	require.ErrorIs(t, err, core.ErrBlocked)

	given, giveUp := context.WithCancel(t.Context())
	waited := make(chan error)
	go func() {
		_, err := engine.Entry(t.Context(), "mail", core.Tokens(3))
		waited <- err
	}()
	require.Eventually(t, func() bool { return virtual.Timers() == 1 }, 2*time.Minute, time.Millisecond)
	virtual.Advance(3 * time.Second)
	require.NoError(t, <-waited)
	go func() {
		_, err := engine.Entry(given, "mail", core.Tokens(1))
		waited <- err
	}()
	require.Eventually(t, func() bool { return virtual.Timers() == 1 }, 2*time.Minute, time.Millisecond)
	giveUp()
	require.ErrorIs(t, <-waited, context.Canceled)

	totals := engine.Resource("mail").Snapshot()
	assert.EqualValues(t, 5, totals.PassedTokens)
	assert.EqualValues(t, 50, totals.BlockedTokens, "whoever gives up neither passes nor is blocked")
}
