package penstockprom_test

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	penstockprom "github.com/penstock-go/penstock/metrics/prometheus"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// readings is a source of signals that knows some.
type readings map[rule.Signal]float64

func (r readings) Read(_ context.Context, signal rule.Signal) (float64, error) {
	if value, ok := r[signal]; ok {
		return value, nil
	}
	return 0, errors.New("no such signal")
}

func TestSignalsThatRulesReadAreExposed(t *testing.T) {
	signals := readings{rule.SignalCPU: 0.75, rule.SignalLoad: 1}
	s := newService(t, core.Config{Signals: signals, SignalInterval: -1})
	defer s.Close()
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{})
	assert.Empty(t, scrape(t, collector).of("penstock_signal"))

	require.NoError(t, s.Load(rules.Set{Adaptive: []adaptive.Rule{{Strategy: adaptive.Threshold, CPU: 0.9, Memory: 0.9}}}))
	s.SampleSignals()
	now := scrape(t, collector)
	assert.Equal(t, []string{`penstock_signal{signal="cpu"}`}, now.of("penstock_signal"))
	assert.InDelta(t, 0.75, now[`penstock_signal{signal="cpu"}`], 0)
	assert.Len(t, now.of("penstock_signal_known"), 2)
	assert.InDelta(t, 1, now[`penstock_signal_known{signal="cpu"}`], 0)
	assert.InDelta(t, 0, now[`penstock_signal_known{signal="memory"}`], 0)

	delete(signals, rule.SignalCPU)
	s.SampleSignals()
	now = scrape(t, collector)
	assert.Empty(t, now.of("penstock_signal"))
	assert.InDelta(t, 0, now[`penstock_signal_known{signal="cpu"}`], 0)
}

func TestShedCallsAreExposedByPriority(t *testing.T) {
	s := newService(t, core.Config{})
	defer s.Close()
	require.NoError(t, s.Load(rules.Set{Adaptive: []adaptive.Rule{{Name: "busy", Resource: "pay", Strategy: adaptive.Threshold, Concurrency: 1}}}))
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{})
	guard, err := s.Entry(t.Context(), "pay")
	require.NoError(t, err)
	for _, p := range []core.Option{core.Priority(rule.PriorityLow), core.Priority(rule.PriorityLow), core.Priority(rule.PriorityNormal)} {
		_, err := s.Entry(t.Context(), "pay", p)
		require.ErrorIs(t, err, core.ErrBlocked)
	}
	now := scrape(t, collector)
	assert.Len(t, now.of("penstock_adaptive_shed_total"), 5, "one for each priority")
	assert.Equal(t, series{
		`penstock_adaptive_shed_total{priority="low",resource="pay",rule="busy"}`:    2,
		`penstock_adaptive_shed_total{priority="normal",resource="pay",rule="busy"}`: 1,
	}, onlyOf(now, "penstock_adaptive_shed_total"))
	assert.InDelta(t, 1, now[`penstock_adaptive_in_flight{resource="pay",rule="busy"}`], 0)
	guard.Exit()
	problems, err := testutil.CollectAndLint(collector)
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestWhatIsSwitchedOffIsExposed(t *testing.T) {
	s := newService(t, core.Config{})
	defer s.Close()
	require.NoError(t, s.Load(rules.Set{Breaker: []breaker.Rule{{Resource: "pay", Threshold: 0.5}}}))
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{})
	for _, scope := range []core.Scope{{}, {Kind: "breaker"}, {Kind: "breaker", Rule: "pay"}, {Resource: "pay"}} {
		require.NoError(t, s.Switch(scope, core.SwitchOff))
	}
	require.NoError(t, s.Switch(core.Scope{Kind: "flow"}, core.SwitchOn))
	assert.Equal(t, series{
		`penstock_switched_off{kind="",resource="",rule=""}`:           1,
		`penstock_switched_off{kind="breaker",resource="",rule=""}`:    1,
		`penstock_switched_off{kind="breaker",resource="",rule="pay"}`: 1,
		`penstock_switched_off{kind="",resource="pay",rule=""}`:        1,
	}, onlyOf(scrape(t, collector), "penstock_switched_off"))
}

func TestForcedKindsAreExposed(t *testing.T) {
	s := newService(t, core.Config{})
	defer s.Close()
	require.NoError(t, s.Load(rules.Set{Breaker: []breaker.Rule{{Resource: "pay", Threshold: 0.5}}}))
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{})
	assert.Empty(t, scrape(t, collector).of("penstock_rules_forced"))
	require.NoError(t, s.Control(core.Scope{Kind: rules.KindBreaker}, "closed"))
	assert.Equal(t, series{`penstock_rules_forced{kind="breaker",state="closed"}`: 1}, onlyOf(scrape(t, collector), "penstock_rules_forced"))
}
