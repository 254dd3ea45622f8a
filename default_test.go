package penstock_test

import (
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

func TestSetDefaultReplacesTheEngineThatTheFunctionsUse(t *testing.T) {
	before := penstock.Default()
	defer penstock.SetDefault(before)
	mine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer mine.Close()
	penstock.SetDefault(mine)
	assert.Same(t, mine, penstock.Default())
	require.NoError(t, penstock.LoadAs("library", penstock.Rules{Flow: []flow.Rule{{Resource: "set-default", Limit: 0}}}))
	_, err := penstock.Entry(t.Context(), "set-default")
	require.ErrorIs(t, err, penstock.ErrBlocked)
	guard, err := before.Entry(t.Context(), "set-default")
	require.NoError(t, err, "the engine before has no such rule")
	guard.Exit()
	assert.Panics(t, func() { penstock.SetDefault(nil) })
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
