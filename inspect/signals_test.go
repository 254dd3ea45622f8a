package inspect_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// busyCPU is a source of signals that knows of the CPU alone.
type busyCPU struct{}

func (busyCPU) Read(_ context.Context, signal rule.Signal) (float64, error) {
	if signal == rule.SignalCPU {
		return 0.8, nil
	}
	return 0, errors.New("permission denied")
}

func TestStatusTellsWhatSignalsShowAndWhoReadsThem(t *testing.T) {
	at := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	engine := core.New(core.Config{
		Clock: clock.NewVirtual(at), Logger: slog.New(slog.DiscardHandler), Signals: busyCPU{}, SignalInterval: -1,
	})
	t.Cleanup(engine.Close)
	assert.Empty(t, inspect.StatusOf(engine).Signals)
	require.NoError(t, engine.Load(rules.Set{Adaptive: []adaptive.Rule{
		{Name: "system", Strategy: adaptive.Threshold, CPU: 0.9, Memory: 0.9},
	}}))
	assert.Equal(t, []inspect.Signal{
		{Signal: "cpu", Error: "core: the signal was not sampled yet", Rules: []string{`adaptive "system"`}},
		{Signal: "memory", Error: "core: the signal was not sampled yet", Rules: []string{`adaptive "system"`}},
	}, inspect.StatusOf(engine).Signals)

	engine.SampleSignals()
	cpu := 0.8
	assert.Equal(t, []inspect.Signal{
		{Signal: "cpu", Value: &cpu, At: at, Rules: []string{`adaptive "system"`}},
		{Signal: "memory", At: at, Error: "permission denied", Rules: []string{`adaptive "system"`}},
	}, inspect.StatusOf(engine).Signals)
}

func TestStatusShowsWhatWasShedOfEachPriority(t *testing.T) {
	engine, _ := newEngine(t)
	require.NoError(t, engine.Load(rules.Set{Adaptive: []adaptive.Rule{
		{Name: "busy", Resource: "pay", Strategy: adaptive.Threshold, Concurrency: 1},
	}}))
	guard, err := engine.Entry(t.Context(), "pay")
	require.NoError(t, err)
	defer guard.Exit()
	_, err = engine.Entry(t.Context(), "pay", core.Priority(rule.PriorityLow))
	require.ErrorIs(t, err, core.ErrBlocked)
	limiters := inspect.StatusOf(engine).Limiters
	require.Len(t, limiters, 1)
	assert.Contains(t, limiters[0].Gauges, inspect.Gauge{Name: "in_flight", Value: 1})
	assert.Contains(t, limiters[0].Gauges, inspect.Gauge{Name: "shed", Value: 1, Label: "priority", LabelValue: "low"})
	assert.Contains(t, limiters[0].Gauges, inspect.Gauge{Name: "shed", Value: 0, Label: "priority", LabelValue: "high"})
}
