package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
)

func TestNamesWithOneShortcutHaveResourcesOfTheirOwn(t *testing.T) {
	t.Parallel()
	e := New(Config{Clock: clock.NewVirtual(time.Unix(1, 0))})
	defer e.Close()
	names := []string{"POST /v1/a/my-orders", "POST /v1/b/my-orders", "POST /v1/c/my-orders"}
	for _, name := range names {
		require.Equal(t, quickHash(names[0]), quickHash(name), name)
	}
	for calls, name := range names {
		for range calls + 1 {
			enterOnce(t, e, name)
		}
	}
	for calls, name := range names {
		assert.EqualValues(t, calls+1, e.Resource(name).Snapshot().Passed, name)
	}
}

func TestNamesOfAnyLengthAreFoundByTheirShortcuts(t *testing.T) {
	t.Parallel()
	e := New(Config{Clock: clock.NewVirtual(time.Unix(1, 0))})
	defer e.Close()
	const letters = "abcdefghijklmnopqrstuvwxyz"
	for n := range len(letters) + 1 {
		enterOnce(t, e, letters[:n])
		r := e.resources.table.shortcuts.slot(quickHash(letters[:n])).resource.Load()
		require.NotNil(t, r)
		assert.Equal(t, letters[:n], r.name)
	}
}

func TestForgottenResourcesHaveNoShortcuts(t *testing.T) {
	t.Parallel()
	c := clock.NewVirtual(time.Unix(1, 0))
	e := New(Config{Clock: c})
	defer e.Close()
	for i := range 2000 {
		enterOnce(t, e, fmt.Sprint("resource ", i))
	}
	held := func() (count int) {
		for i := range e.resources.table.shortcuts {
			if e.resources.table.shortcuts[i].resource.Load() != nil {
				count++
			}
		}
		return count
	}
	require.Greater(t, held(), len(e.resources.table.shortcuts)/2)
	c.Advance(2 * time.Minute)
	require.Empty(t, e.Snapshot().Resources)
	assert.Zero(t, held())
}

func enterOnce(t *testing.T, e *Engine, name string) {
	t.Helper()
	guard, err := e.Entry(t.Context(), name)
	require.NoError(t, err)
	guard.Exit()
}
