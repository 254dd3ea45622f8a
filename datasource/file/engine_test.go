package file_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/file"
)

func TestEngineEnforcesTheRulesInADirectory(t *testing.T) {
	const patience = 20 * time.Second
	dir := t.TempDir()
	path := filepath.Join(dir, "orders.yaml")
	write(t, path, "flow:\n  - resource: orders\n    limit: 0\n")
	source, err := file.New(dir, file.Options{Interval: 2 * time.Millisecond})
	require.NoError(t, err)
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	require.NoError(t, engine.Follow(t.Context(), source))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, engine.Ready(ctx))
	_, err = engine.Entry(t.Context(), "orders")
	require.ErrorIs(t, err, core.ErrBlocked)

	write(t, path, "")
	require.Eventually(t, func() bool {
		return engine.Status().Sources[0].Documents[0].Rejected != nil
	}, patience, time.Millisecond)
	_, err = engine.Entry(t.Context(), "orders")
	require.ErrorIs(t, err, core.ErrBlocked, "an empty file changes nothing")

	replace(t, path, "flow: []")
	assert.Eventually(t, func() bool {
		guard, err := engine.Entry(t.Context(), "orders")
		if err == nil {
			guard.Exit()
		}
		return err == nil
	}, patience, time.Millisecond)
}
