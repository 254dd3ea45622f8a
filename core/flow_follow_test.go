package core_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// byMemory makes a rule follow the memory in use: from 70 % of it to 90 %.
func byMemory(r flow.Rule, least float64) flow.Rule {
	r.Follow = flow.Follow{Signal: rule.SignalMemory, From: 0.7, To: 0.9, Least: least}
	return r
}

// newSampledEngine returns an engine whose signals are sampled when the test says so.
func newSampledEngine(t *testing.T, source core.SignalSource, log *slog.Logger) (*core.Engine, *clock.Virtual) {
	t.Helper()
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: log, Signals: source, SignalInterval: -1})
	t.Cleanup(e.Close)
	return e, c
}

func TestFlowRulesFollowASignalOnAllTheirResources(t *testing.T) {
	source := newReadings(map[rule.Signal]float64{rule.SignalMemory: 0.8})
	e, c := newSampledEngine(t, source, quiet)
	load(t, e,
		byMemory(flow.Rule{Match: "each:*", Limit: 1000}, 100),
		byMemory(flow.Rule{Match: "all:*", Shared: true, Limit: 100}, 10),
		flow.Rule{Resource: "fixed", Limit: 50},
	)
	passed := func() []int {
		c.Advance(time.Second)
		return []int{enter(e, "each:a", 2000), enter(e, "each:b", 2000), enter(e, "all:a", 40), enter(e, "all:b", 200), enter(e, "fixed", 60)}
	}
	assert.Equal(t, []int{1000, 1000, 40, 60, 50}, passed(), "not sampled yet")
	e.SampleSignals()
	assert.Equal(t, []int{550, 550, 40, 15, 50}, passed())
	source.set(rule.SignalMemory, 0.95)
	assert.Equal(t, []int{550, 550, 40, 15, 50}, passed(), "not sampled since")
	e.SampleSignals()
	assert.Equal(t, []int{100, 100, 10, 0, 50}, passed())

	quota := e.Quotas("each:a")[0].Quota
	assert.InDelta(t, 1000, quota.Limit, 0)
	assert.InDelta(t, 100, quota.Effective, 0)
	assert.Zero(t, quota.Remaining)

	assert.Equal(t, 100, enter(e, "each:c", 2000), "a resource that was called for the first time")
	load(t, e, byMemory(flow.Rule{Match: "each:*", Limit: 1000}, 200))
	c.Advance(time.Second)
	assert.Equal(t, 200, enter(e, "each:a", 2000), "a changed rule")
	load(t, e, flow.Rule{Match: "each:*", Limit: 1000})
	assert.Equal(t, 800, enter(e, "each:a", 2000), "a rule that follows no more")
	assert.Empty(t, e.Status().Signals)
}

func TestFlowRuleKeepsItsLimitWhenTheSignalCannotBeRead(t *testing.T) {
	var log bytes.Buffer
	source := newReadings(map[rule.Signal]float64{rule.SignalMemory: 0.9})
	e, c := newSampledEngine(t, source, slog.New(slog.NewTextHandler(&log, nil)))
	load(t, e, byMemory(flow.Rule{Resource: "r", Limit: 50}, 10))
	e.SampleSignals()
	require.Equal(t, 10, enter(e, "r", 100))
	source.forget(rule.SignalMemory)
	log.Reset()
	for range 3 {
		e.SampleSignals()
		c.Advance(time.Second)
		assert.Equal(t, 50, enter(e, "r", 100))
	}
	require.Error(t, e.Status().Signals[0].Err)
	assert.Equal(t, []string{`flow "r"`}, e.Status().Signals[0].Rules)
	assert.Equal(t, 1, strings.Count(log.String(), "a signal cannot be read"), log.String())
	source.set(rule.SignalMemory, 0.9)
	e.SampleSignals()
	c.Advance(time.Second)
	assert.Equal(t, 10, enter(e, "r", 100))
}

func TestRelatedAndShadowRulesFollowASignal(t *testing.T) {
	source := newReadings(map[rule.Signal]float64{rule.SignalMemory: 0.9})
	e, _ := newSampledEngine(t, source, quiet)
	yields := byMemory(flow.Rule{Name: "yields", Resource: "reads", Related: "writes", Limit: 50}, 5)
	shadow := byMemory(flow.Rule{Name: "shadow", Resource: "writes", Limit: 50, Shadow: true}, 3)
	load(t, e, yields, shadow)
	require.Equal(t, 6, enter(e, "writes", 6))
	require.Equal(t, 1, enter(e, "reads", 1))
	e.SampleSignals()
	assert.Zero(t, enter(e, "reads", 1), "5 writes a second are too many now")
	guard, err := e.Entry(t.Context(), "writes")
	require.NoError(t, err)
	assert.Error(t, guard.WouldBlock())
	guard.Exit()
}

func TestWaitingCallPassesSoonAfterItsSignalHasFallen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newReadings(map[rule.Signal]float64{rule.SignalMemory: 1})
		e := core.New(core.Config{Logger: quiet, Signals: source})
		defer e.Close()
		load(t, e, byMemory(throttle("r", 10, time.Hour), 0.01))
		synctest.Wait()
		passed := make([]time.Duration, 3)
		callers := comeInOrder(t, e, passed)
		time.Sleep(5*time.Second + 100*time.Millisecond)
		source.set(rule.SignalMemory, 0.5)
		callers.Wait()
		assert.Zero(t, passed[0])
		assert.InDelta(t, 5300*time.Millisecond, passed[1], float64(260*time.Millisecond), "rather than after 100 s")
		assert.Equal(t, 100*time.Millisecond, passed[2]-passed[1])
	})
}

func TestEntryServesWaitingCallsByPriority(t *testing.T) {
	inBubble(t, func(t *testing.T, e *core.Engine) {
		start := time.Now()
		passed := make([]time.Duration, 5)
		var errs [5]error
		priorities := []rule.Priority{rule.PriorityNormal, rule.PriorityLow, rule.PriorityLow, rule.PriorityHigh, rule.PriorityCritical}
		done := make(chan struct{})
		for i, p := range priorities {
			go func() {
				_, errs[i] = e.Entry(t.Context(), "r", core.Priority(p))
				passed[i] = time.Since(start)
				done <- struct{}{}
			}()
			synctest.Wait()
		}
		for range priorities {
			<-done
		}
		assert.Equal(t, []time.Duration{0, 3 * time.Second, 3 * time.Second, 2 * time.Second, time.Second}, passed)
		require.NoError(t, errs[1])
		var blocked *core.BlockError
		require.ErrorAs(t, errs[2], &blocked, "it would have passed after four seconds")
		assert.Positive(t, blocked.RetryAfter)
	}, throttle("r", 1, 3500*time.Millisecond))
}
