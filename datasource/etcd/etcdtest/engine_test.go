package etcdtest_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
)

const closed = "flow:\n  - resource: orders\n    limit: 0\n"

// newEngine returns an engine that follows the server's documents and has read
// them.
func newEngine(t *testing.T, endpoint string) *core.Engine {
	t.Helper()
	engine := newEngineOf(t, newSource(t, endpoint, shortBackoff()))
	ready(t, engine)
	return engine
}

// newEngineOf returns an engine that follows the source.
func newEngineOf(t *testing.T, source core.Source) *core.Engine {
	t.Helper()
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Follow(t.Context(), source))
	return engine
}

func ready(t *testing.T, engine *core.Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	require.NoError(t, engine.Ready(ctx))
}

func passes(t *testing.T, engine *core.Engine) bool {
	t.Helper()
	guard, err := engine.Entry(t.Context(), "orders")
	if err != nil {
		assert.ErrorIs(t, err, core.ErrBlocked)
		return false
	}
	guard.Exit()
	return true
}

func awaitPasses(t *testing.T, engine *core.Engine, want bool) {
	t.Helper()
	require.Eventually(t, func() bool { return passes(t, engine) == want }, eventTimeout, time.Millisecond)
}
