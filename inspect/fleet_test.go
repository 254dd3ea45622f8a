package inspect_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"slices"
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
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/rule"
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
		set := rules.Set{Flow: []flow.Rule{{Name: "quota", Resource: "r", Limit: 100, Scope: rule.ScopeFleet}}}
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
	require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{{Name: "quota", Resource: "r", Limit: 100, Scope: rule.ScopeFleet}}}))
	status := inspect.StatusWithShares(t.Context(), e).Fleet
	require.NotNil(t, status)
	assert.False(t, status.Connected)
	assert.Contains(t, status.Error, "core.Config.Fleet")
}

// What passes in an outage is told, and is written as JSON even if it is infinite.
func TestStatusInAnOutageTellsWhatPasses(t *testing.T) {
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	store := memory.New(c)
	e := core.New(core.Config{Clock: c, Logger: slog.New(slog.DiscardHandler), Fleet: fleet.Config{Manual: true}})
	defer e.Close()
	var set rules.Set
	for _, onOutage := range []fleet.OnOutage{fleet.OutageLast, fleet.OutageShare, fleet.OutageOpen, fleet.OutageClosed} {
		for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeAsk, fleet.ModeShare} {
			set.Flow = append(set.Flow, flow.Rule{
				Name: string(onOutage) + "-" + string(mode), Resource: "r-" + string(onOutage) + "-" + string(mode), Limit: 100,
				Scope: rule.ScopeFleet, Fleet: rule.Fleet{Mode: mode, OnOutage: onOutage},
			})
		}
	}
	require.NoError(t, e.Load(set))
	isDown := false
	var arrivals []*core.Arrival
	for end := c.Now().Add(6 * time.Second); c.Now() < end; c.Advance(5 * time.Millisecond) {
		isDown = end.Sub(c.Now()) < 3*time.Second
		for _, r := range set.Flow {
			a := new(core.Arrival)
			a.Arrive(context.Background(), e, r.Resource, func() {})
			arrivals = append(arrivals, a)
		}
		arrivals = slices.DeleteFunc(arrivals, func(a *core.Arrival) bool {
			_, done := a.Proceed()
			return done
		})
		for _, batch := range sharing.Of(e.Fleet()).Step(c.Now()) {
			if isDown {
				sharing.Of(e.Fleet()).Fail(c.Now(), batch, fleet.ErrUnavailable)
				continue
			}
			require.NoError(t, batch.Send(t.Context(), store))
			sharing.Of(e.Fleet()).Deliver(c.Now(), batch)
		}
	}
	text, err := json.Marshal(inspect.StatusOf(e))
	require.NoError(t, err)
	var status inspect.Status
	require.NoError(t, json.Unmarshal(text, &status))
	require.Len(t, status.Fleet.Limits, len(set.Flow))
	for _, limit := range status.Fleet.Limits {
		assert.True(t, limit.Outage, limit.Key)
		checkCeiling(t, limit.OnOutage, limit.Granted, limit.Key)
	}
	for _, r := range set.Flow {
		text, err := json.Marshal(inspect.Explain(e, inspect.Call{Resource: r.Resource}))
		require.NoError(t, err)
		var explained inspect.Explanation
		require.NoError(t, json.Unmarshal(text, &explained))
		checkCeiling(t, r.Fleet.OnOutage, explained.Rules[0].State.Effective, r.Name)
	}
}

func checkCeiling(t *testing.T, onOutage fleet.OnOutage, ceiling inspect.Ceiling, of string) {
	t.Helper()
	switch onOutage {
	case fleet.OutageOpen:
		assert.True(t, ceiling.IsInfinite(), "%s: %v", of, ceiling)
	case fleet.OutageClosed:
		assert.Zero(t, ceiling, of)
	default:
		assert.InDelta(t, 100, float64(ceiling), 40, of) // calls of mode ask pass in bursts
	}
}
