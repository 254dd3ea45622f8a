package penstockprom_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	penstockprom "github.com/penstock-go/penstock/metrics/prometheus"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// What is used of a rule and left is exposed where somebody counts it; of values never.
func TestUsedPartsOfLimitsAreExposed(t *testing.T) {
	s := newService(t, core.Config{})
	defer s.Close()
	require.NoError(t, s.Load(rules.Set{
		Flow: []flow.Rule{
			{Name: "bucket", Resource: "a", Limit: 10, Algorithm: flow.TokenBucket, Burst: 20},
			{Name: "credit", Resource: "a", Limit: 50, Algorithm: flow.Prepaid},
			{Name: "empty", Resource: "b", Limit: 0, Algorithm: flow.Prepaid},
			{Name: "fixed", Resource: "a", Limit: 8, Window: time.Hour, Algorithm: flow.FixedWindow},
			{Name: "none", Resource: "b", Limit: 0},
			{Name: "sliding", Resource: "a", Limit: 16, Window: time.Minute},
			{Name: "spaced", Resource: "c", Limit: 1000, Algorithm: flow.Throttle},
		},
		HotParam: []hotparam.Rule{{Resource: "a", Param: rule.StringsOf("user"), Limit: 10, Window: time.Minute, Algorithm: hotparam.FixedWindow}},
	}))
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{})
	for range 4 {
		g, err := s.Entry(t.Context(), "a", core.String("user", "u1"))
		require.NoError(t, err)
		g.Exit()
	}
	g, err := s.Entry(t.Context(), "c")
	require.NoError(t, err)
	g.Exit()
	_, err = s.Entry(t.Context(), "b")
	require.Error(t, err)
	now := scrape(t, collector)
	assert.ElementsMatch(t, []string{
		`penstock_flow_used_ratio{resource="a",rule="bucket"}`, `penstock_flow_used_ratio{resource="a",rule="credit"}`,
		`penstock_flow_used_ratio{resource="a",rule="fixed"}`, `penstock_flow_used_ratio{resource="a",rule="sliding"}`,
	}, now.of("penstock_flow_used_ratio"))
	assert.InDelta(t, 0.08, now[`penstock_flow_used_ratio{resource="a",rule="credit"}`], 1e-9)
	assert.InDelta(t, 0.5, now[`penstock_flow_used_ratio{resource="a",rule="fixed"}`], 1e-9)
	assert.InDelta(t, 0.25, now[`penstock_flow_used_ratio{resource="a",rule="sliding"}`], 1e-9)
	assert.Greater(t, now[`penstock_flow_used_ratio{resource="a",rule="bucket"}`], 0.1)
	assert.ElementsMatch(t, []string{
		`penstock_flow_remaining_tokens{resource="a",rule="bucket"}`, `penstock_flow_remaining_tokens{resource="a",rule="credit"}`,
		`penstock_flow_remaining_tokens{resource="b",rule="empty"}`, `penstock_flow_remaining_tokens{resource="a",rule="fixed"}`,
		`penstock_flow_remaining_tokens{resource="a",rule="sliding"}`,
	}, now.of("penstock_flow_remaining_tokens"))
	assert.InDelta(t, 46, now[`penstock_flow_remaining_tokens{resource="a",rule="credit"}`], 0)
	assert.InDelta(t, 12, now[`penstock_flow_remaining_tokens{resource="a",rule="sliding"}`], 0)
	assert.Empty(t, now.of("penstock_hot_param_used_ratio"))
}
