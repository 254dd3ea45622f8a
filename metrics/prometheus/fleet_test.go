package penstockprom_test

import (
	"context"
	"log/slog"
	"math"
	"sync/atomic"
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
	"github.com/penstock-go/penstock/rule"
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
	shared := core.New(core.Config{Fleet: fleet.Config{Backend: memory.New(clock.System())}})
	defer shared.Close()
	require.NoError(t, shared.Load(rules.Set{Flow: []flow.Rule{{Resource: "r", Limit: 1, Scope: rule.ScopeFleet}}}))
	names := namesOf(t, shared)
	for _, name := range []string{
		"penstock_fleet_rules", "penstock_fleet_connected", "penstock_fleet_instances", "penstock_fleet_outages_total",
		"penstock_fleet_requests_total", "penstock_fleet_request_duration_seconds", "penstock_flow_fleet_outage",
		"penstock_flow_fleet_granted_tokens_per_second", "penstock_flow_fleet_demand_tokens_per_second",
	} {
		assert.True(t, names[name], name)
	}
}

// outages is a store that does not answer while it is down.
type outages struct {
	*memory.Store

	isDown atomic.Bool
}

func (o *outages) Exchange(ctx context.Context, requests []fleet.Request, replies []fleet.Reply) {
	o.Store.Exchange(ctx, requests, replies)
	for i := range replies {
		if o.isDown.Load() {
			replies[i] = fleet.Reply{Err: fleet.ErrUnavailable}
		}
	}
}

func (o *outages) Announce(ctx context.Context, self fleet.Instance, withInstances bool) (fleet.Fleet, error) {
	if o.isDown.Load() {
		return fleet.Fleet{}, fleet.ErrUnavailable
	}
	return o.Store.Announce(ctx, self, withInstances)
}

// In an outage metrics show what passes now, which is what onOutage says.
func TestMetricsInAnOutageShowWhatPasses(t *testing.T) {
	passesSome := func(perSecond float64) bool { return perSecond > 0 && perSecond <= 150 }
	for onOutage, isRight := range map[fleet.OnOutage]func(perSecond float64) bool{
		fleet.OutageOpen:   func(perSecond float64) bool { return math.IsInf(perSecond, 1) },
		fleet.OutageClosed: func(perSecond float64) bool { return perSecond == 0 },
		fleet.OutageLast:   passesSome,
	} {
		c := clock.NewVirtual(time.Unix(1_700_000_000, 0))
		store := &outages{Store: memory.New(c)}
		e := core.New(core.Config{Clock: c, Logger: slog.New(slog.DiscardHandler), Fleet: fleet.Config{Backend: store}})
		require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{
			{Resource: "r", Limit: 100, Scope: rule.ScopeFleet, Fleet: rule.Fleet{OnOutage: onOutage}},
		}}))
		callUntil := func(isSo func() bool) {
			require.Eventually(t, func() bool {
				guard, _ := e.Entry(context.Background(), "r")
				guard.Exit()
				c.Advance(5 * time.Millisecond)
				return isSo()
			}, time.Minute, time.Millisecond)
		}
		start := c.Now()
		callUntil(func() bool { return c.Now().Sub(start) > 3*time.Second && e.Fleet().Status(c.Now()).Connected })
		store.isDown.Store(true)
		callUntil(func() bool { return gaugesOf(t, e)["penstock_flow_fleet_outage"] == 1 })
		values := gaugesOf(t, e)
		for _, name := range []string{"penstock_flow_ceiling_tokens_per_second", "penstock_flow_fleet_granted_tokens_per_second"} {
			assert.True(t, isRight(values[name]), "%s is %v, %s", name, values[name], onOutage)
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
