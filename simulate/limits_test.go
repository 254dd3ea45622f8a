package simulate

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestLimitsThatMoveAreRecordedOnceASecond(t *testing.T) {
	t.Parallel()
	load := Load{
		Streams: []Stream{
			{Resource: "r", Rate: 10, ServiceTime: 250 * time.Millisecond, Priority: rule.PriorityLow},
			{Resource: "r", Times: []time.Duration{1050 * time.Millisecond}, Priority: rule.PriorityCritical},
		},
		Signals: []Signal{{CPU: pointerTo(0.03)}, {At: time.Second, CPU: pointerTo(0.01)}},
	}
	result, err := Run(t.Context(), gatedRules(rule.SignalCPU), load, Options{
		Duration: 2500 * time.Millisecond, Kinds: []rule.Definition{gatedKind()},
	})
	require.NoError(t, err)
	row := func(t, limit float64, inFlight int, shed map[string]int) Limit {
		return Limit{T: t, Rule: "cpu", Limit: &limit, InFlight: inFlight, Shed: shed, Kind: "gated", Resource: "r"}
	}
	// From 1 s on, one call passes every 0.3 s: the first at 1.2 s, for two are under way
	// until 1.15 s.
	assert.Equal(t, []Limit{
		row(0, 3, 0, map[string]int{}),
		row(1, 1, 2, map[string]int{"low": 7, "critical": 1}),
		row(2, 1, 1, map[string]int{"low": 3}),
	}, result.Limits)

	encoded, err := json.Marshal(result.Limits[1])
	require.NoError(t, err)
	assert.JSONEq(t, `{"t":1,"rule":"cpu","limit":1,"inFlight":2,"queued":0,"shed":{"low":7,"critical":1},"kind":"gated","resource":"r"}`,
		string(encoded))
}

func TestEachLimiterOfAPatternHasRows(t *testing.T) {
	t.Parallel()
	load := Load{Streams: []Stream{{Resource: "b", Rate: 1}, {Resource: "a", Times: []time.Duration{1500 * time.Millisecond}}}}
	rowsOf := func(g gated) (list []string) {
		var set rules.Set
		set.Custom = append(set.Custom, gatedKind().Of(g))
		result, err := Run(t.Context(), set, load, Options{Duration: 3 * time.Second, Kinds: []rule.Definition{gatedKind()}})
		require.NoError(t, err)
		for _, row := range result.Limits {
			list = append(list, row.Resource)
		}
		return list
	}
	assert.Equal(t, []string{"a", "b", "a", "b", "a", "b"}, rowsOf(gated{Name: "each", Match: "*", Signal: rule.SignalCPU}))
	assert.Equal(t, []string{"*", "*", "*"}, rowsOf(gated{Name: "all", Match: "*", Shared: true, Signal: rule.SignalCPU}))
}

func TestRulesWithLimitsThatStayHaveNoRows(t *testing.T) {
	t.Parallel()
	result, err := Run(t.Context(), rules.Set{}, Load{Streams: []Stream{{Resource: "r", Rate: 1}}}, Options{Duration: time.Second})
	require.NoError(t, err)
	assert.Equal(t, []Limit{}, result.Limits)
	assert.Empty(t, result.Signals)
}
