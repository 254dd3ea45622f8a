package inspect_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

func TestStatusShowsHowLoadedTheServiceIs(t *testing.T) {
	t.Parallel()
	virtual := clock.NewVirtual(time.Unix(1_700_000_000, 0))
	engine := core.New(core.Config{Clock: virtual, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Load(rules.Set{Isolation: []isolation.Rule{{Resource: "r", Limit: 1}}}))
	assert.Nil(t, inspect.StatusOf(engine).Load, "nobody has asked")
	virtual.Advance(time.Second)
	guard, err := engine.Entry(context.Background(), "r")
	require.NoError(t, err)
	defer guard.Exit()
	guard.Load()
	virtual.Advance(10 * time.Second)
	load := inspect.StatusOf(engine).Load
	require.NotNil(t, load)
	assert.Equal(t, "moderate", load.Level)
	assert.InDelta(t, 1, load.Utilization, 0.001)
}
