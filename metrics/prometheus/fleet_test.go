package penstockprom_test

import (
	"context"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/flow"
	penstockprom "github.com/penstock-go/penstock/metrics/prometheus"
	"github.com/penstock-go/penstock/rules"
)

// namesOf returns the names of the metrics of an engine.
func namesOf(t *testing.T, e *core.Engine) map[string]bool {
	t.Helper()
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(penstockprom.NewCollector(e, penstockprom.Options{})))
	families, err := registry.Gather()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
	}
	return names
}

func TestFleetIsExposedWhereThereIsOne(t *testing.T) {
	own := core.New(core.Config{})
	defer own.Close()
	require.NoError(t, own.Load(rules.Set{Flow: []flow.Rule{{Resource: "r", Limit: 1}}}))
	for name := range namesOf(t, own) {
		assert.NotContains(t, name, "fleet")
	}
	shared := core.New(core.Config{Fleet: fleet.Config{Manual: true}})
	defer shared.Close()
	require.NoError(t, shared.Load(rules.Set{Flow: []flow.Rule{{Resource: "r", Limit: 1, Scope: flow.ScopeFleet}}}))
	names := namesOf(t, shared)
	for _, name := range []string{
		"penstock_fleet_rules", "penstock_fleet_connected", "penstock_fleet_instances", "penstock_fleet_outages_total",
		"penstock_fleet_requests_total", "penstock_fleet_request_duration_seconds", "penstock_flow_fleet_outage",
		"penstock_flow_fleet_granted_tokens_per_second", "penstock_flow_fleet_demand_tokens_per_second",
	} {
		assert.True(t, names[name], name)
	}
}

// In an outage metrics show what passes now, which is what onOutage says.
func TestMetricsInAnOutageShowWhatPasses(t *testing.T) {
	for onOutage, want := range map[fleet.OnOutage]float64{fleet.OutageOpen: math.Inf(1), fleet.OutageClosed: 0, fleet.OutageLast: 100} {
		c := clock.NewVirtual(time.Unix(1_700_000_000, 0))
		e := core.New(core.Config{Clock: c, Logger: slog.New(slog.DiscardHandler), Fleet: fleet.Config{Manual: true}})
		require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{
			{Resource: "r", Limit: 100, Scope: flow.ScopeFleet, Fleet: flow.Fleet{OnOutage: onOutage}},
		}}))
		store := memory.New(c)
		start := c.Now()
		for since := time.Duration(0); since < 6*time.Second; since = c.Now().Sub(start) {
			guard, _ := e.Entry(context.Background(), "r")
			guard.Exit()
			for _, batch := range e.Fleet().Step(c.Now()) {
				if since < 3*time.Second {
					require.NoError(t, batch.Send(t.Context(), store))
					e.Fleet().Deliver(c.Now(), batch)
				} else {
					e.Fleet().Fail(c.Now(), batch, fleet.ErrUnavailable)
				}
			}
			c.Advance(5 * time.Millisecond)
		}
		values := gaugesOf(t, e)
		assert.InDelta(t, 1, values["penstock_flow_fleet_outage"], 0)
		for _, name := range []string{"penstock_flow_ceiling_tokens_per_second", "penstock_flow_fleet_granted_tokens_per_second"} {
			if math.IsInf(want, 1) {
				assert.True(t, math.IsInf(values[name], 1), "%s is %v", name, values[name])
			} else {
				assert.InDelta(t, want, values[name], 25, "%s, %s", name, onOutage)
			}
		}
		e.Close()
	}
}

// gaugesOf returns the values of the gauges of an engine with a single resource.
func gaugesOf(t *testing.T, e *core.Engine) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(penstockprom.NewCollector(e, penstockprom.Options{})))
	families, err := registry.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, f := range families {
		if gauge := f.GetMetric()[0].GetGauge(); gauge != nil {
			values[f.GetName()] = gauge.GetValue()
		}
	}
	return values
}
