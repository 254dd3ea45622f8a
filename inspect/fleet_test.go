package inspect_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rules"
)

// breaking is a store that can stop to tell of the fleet.
type breaking struct {
	*memory.Store
	down bool
}

func (b *breaking) Announce(ctx context.Context, self fleet.Instance, all bool) (fleet.Fleet, error) {
	if b.down {
		return fleet.Fleet{}, fleet.ErrUnavailable
	}
	return b.Store.Announce(ctx, self, all)
}

func TestStatusHasTheSharesOfAllInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
		store := &breaking{Store: memory.New(clock.System())}
		set := rules.Set{Flow: []flow.Rule{{Name: "quota", Resource: "r", Limit: 100, Scope: flow.ScopeFleet}}}
		var engines []*core.Engine
		for _, name := range []string{"a", "b"} {
			e := core.New(core.Config{Logger: quiet, Fleet: fleet.Config{Backend: store, Instance: name}})
			defer e.Close()
			require.NoError(t, e.Load(set))
			engines = append(engines, e)
		}
		for range 400 {
			for i, e := range engines {
				for range 1 + 2*i { // the second makes three times as many calls
					guard, _ := e.Entry(t.Context(), "r")
					guard.Exit()
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
		assert.Nil(t, inspect.StatusOf(engines[0]).Fleet.Limits[0].Shares, "it asks nobody")
		status := inspect.StatusWithShares(t.Context(), engines[0]).Fleet
		require.Empty(t, status.SharesError)
		assert.Equal(t, 2, status.Instances)
		assert.True(t, status.Connected)
		require.Len(t, status.Limits, 1)
		limit := status.Limits[0]
		assert.Equal(t, "flow/quota", limit.Key)
		require.Len(t, limit.Shares, 2)
		assert.Equal(t, "b", limit.Shares[0].Instance)
		assert.InDelta(t, 300, limit.Shares[0].Demand, 60)
		assert.InDelta(t, 400, limit.Fleet.Demand, 80)
		assert.InDelta(t, 100, limit.Fleet.Passed, 25)

		store.down = true
		status = inspect.StatusWithShares(t.Context(), engines[0]).Fleet
		assert.Contains(t, status.SharesError, "does not answer")
		assert.Nil(t, status.Limits[0].Shares)
	})
}

func TestStatusSaysThatAFleetRuleHasNoBackend(t *testing.T) {
	e := core.New(core.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	defer e.Close()
	assert.Nil(t, inspect.StatusOf(e).Fleet)
	require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{{Name: "quota", Resource: "r", Limit: 100, Scope: flow.ScopeFleet}}}))
	status := inspect.StatusWithShares(t.Context(), e).Fleet
	require.NotNil(t, status)
	assert.False(t, status.Connected)
	assert.Contains(t, status.Error, "core.Config.Fleet")
}
