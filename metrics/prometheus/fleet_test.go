package penstockprom_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
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
