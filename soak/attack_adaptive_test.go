package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/signal"
)

// workplace is an engine with adaptive rules on a clock that tests set, and calls under way.
type workplace struct {
	tb     testing.TB
	clock  *backward
	engine *core.Engine
	cpu    float64
	calls  []ending
}

func newWorkplace(tb testing.TB, list ...adaptive.Rule) *workplace {
	tb.Helper()
	start := time.Unix(1_700_000_000, 0)
	w := &workplace{tb: tb, clock: &backward{Virtual: clock.NewVirtual(start)}}
	w.clock.at.Store(start.UnixNano())
	w.engine = core.New(core.Config{
		Clock: w.clock, Seed: 7, Logger: slog.New(slog.DiscardHandler), SignalInterval: -1,
		Signals: signal.Map{rule.SignalCPU: func(context.Context) (float64, error) { return w.cpu, nil }},
	})
	tb.Cleanup(w.engine.Close)
	require.NoError(tb, w.engine.Load(rules.Set{Adaptive: list}))
	return w
}

// enter makes a call that does not wait, and says whether it passes. It ends when its time
// has come; never if it takes 0.
func (w *workplace) enter(took time.Duration, opts ...core.Option) bool {
	guard, err := w.engine.Entry(context.Background(), "r", append(opts, core.NoWait(), core.Inbound())...)
	if err != nil {
		require.ErrorIs(w.tb, err, core.ErrBlocked)
		return false
	}
	w.calls = append(w.calls, ending{w.clock.Now().Add(took), &guard})
	return true
}

// advance moves the clock, and ends calls that have lasted long enough.
func (w *workplace) advance(d time.Duration) {
	w.clock.at.Add(int64(d))
	kept := w.calls[:0]
	for _, c := range w.calls {
		if c.at > w.clock.Now() {
			kept = append(kept, c)
			continue
		}
		c.guard.Exit()
	}
	w.calls = kept
}

func (w *workplace) endAll() {
	for _, c := range w.calls {
		c.guard.Exit()
	}
	w.calls = nil
}

func (w *workplace) gauge(name string) float64 {
	for i, g := range adaptive.Kind().Gauges() {
		if g.Name == name {
			return w.engine.Explain("r")[0].Gauges[i]
		}
	}
	w.tb.Fatalf("no gauge %s", name)
	return 0
}

// strategies are rules of all strategies with the same limits.
func strategies() map[string]adaptive.Rule {
	return map[string]adaptive.Rule{
		"latency":   {MinLimit: 2, MaxLimit: 50},
		"threshold": {Strategy: adaptive.Threshold, CPU: 0.8, Concurrency: 50, QPS: 1e6, AvgRT: 100 * time.Millisecond},
	}
}

// No call wants to wait, or a shadow rule has none wait: the limit is found all the same. The
// service can do 200 calls of 10 ms at once.
func TestLimitIsFoundAlthoughNoCallWaits(t *testing.T) {
	for name, r := range map[string]adaptive.Rule{
		"calls that do not wait": {}, "shadow": {Shadow: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkplace(t, r)
			refused := 0
			for i := range 40_000 { // 10,000 a second, 100 under way
				if !w.enter(10*time.Millisecond) && i >= 30_000 {
					refused++
				}
				w.advance(100 * time.Microsecond)
			}
			t.Logf("limit %v, %d refused in the last second", w.gauge("limit"), refused)
			assert.Greater(t, w.gauge("limit"), 90.0)
			assert.LessOrEqual(t, refused, 100)
		})
	}
}

// A clock that stands still, that jumps ahead by an hour and that goes back, calls that take
// no time, hours, or never end: the limit stays within its bounds, and once calls are as
// usual they pass.
func TestAdaptiveRulesSurviveOddTimes(t *testing.T) {
	for name, r := range strategies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkplace(t, r)
			random := rand.New(rand.NewPCG(1, 2))
			for i := range 20_000 {
				took := time.Duration(random.IntN(20)) * time.Millisecond
				switch random.IntN(200) {
				case 0:
					took = 0
				case 1:
					took = time.Duration(random.IntN(5)) * time.Hour
				}
				w.enter(took, core.Priority(rule.PriorityCritical-rule.Priority(random.IntN(5))))
				switch n := random.IntN(2000); {
				case n == 0:
					w.advance(time.Hour)
				case n == 1:
					w.clock.at.Add(-random.Int64N(int64(time.Hour)))
				case n < 1000:
					w.advance(time.Duration(random.IntN(2000)) * time.Microsecond)
				}
				if i%10 > 0 {
					continue
				}
				require.LessOrEqual(t, w.gauge("in_flight"), 50.0)
				if limit := w.gauge("limit"); r.Strategy != adaptive.Threshold {
					require.True(t, limit >= 2 && limit <= 50, "limit %v after %d calls", limit, i)
				}
				if i%4000 == 0 {
					w.cpu = random.Float64() * 2
					w.engine.SampleSignals()
				}
			}
			w.endAll()
			require.Zero(t, w.gauge("in_flight"))
			w.cpu = 0
			w.engine.SampleSignals()
			w.advance(2 * time.Hour) // later than all that it has shown
			refused := 0
			for i := range 20_000 {
				if !w.enter(time.Millisecond) && i > 10_000 {
					refused++
				}
				w.advance(2 * time.Millisecond)
			}
			assert.Zero(t, refused)
		})
	}
}

// All calls that may be under way never end. The service is not lost for good, and when
// they do end the limit is in its bounds.
func TestCallsThatNeverEndDoNotBlockForGood(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t, adaptive.Rule{MaxLimit: 1000})
	for w.enter(1000 * time.Hour) {
	}
	leaked := len(w.calls)
	passed := 0
	for range 30_000 {
		if w.enter(10 * time.Millisecond) {
			passed++
		}
		w.advance(5 * time.Millisecond)
	}
	t.Logf("%d leaked, %d of 30000 passed afterwards", leaked, passed)
	assert.Greater(t, passed, 20_000)
	w.endAll()
	assert.Zero(t, w.gauge("in_flight"))
}

// A limit of one is kept, and calls still pass one by one.
func TestLimitOfOneServesOneByOne(t *testing.T) {
	for name, r := range map[string]adaptive.Rule{
		"latency":   {MaxLimit: 1},
		"threshold": {Strategy: adaptive.Threshold, Concurrency: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkplace(t, r)
			w.cpu = 1
			w.engine.SampleSignals()
			w.advance(time.Second)
			passed := 0
			for range 10_000 {
				if w.enter(9 * time.Millisecond) {
					passed++
				}
				require.LessOrEqual(t, len(w.calls), 1)
				w.advance(time.Millisecond)
			}
			assert.Greater(t, passed, 600) // a thousand could, if the others came just when one ends
		})
	}
}

// A million calls are under way.
func TestMillionCallsUnderWayAreCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	calls := longtest.Of(200_000, 1_000_000)
	for name, r := range map[string]adaptive.Rule{
		"latency":   {MinLimit: calls, MaxLimit: calls},
		"threshold": {Strategy: adaptive.Threshold, Concurrency: calls},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkplace(t, r)
			for i := range calls {
				require.True(t, w.enter(time.Hour), "call %d", i)
				w.clock.at.Add(int64(time.Microsecond))
			}
			for range 100 {
				require.False(t, w.enter(time.Hour))
				w.clock.at.Add(int64(time.Second))
			}
			assert.InDelta(t, calls, w.gauge("in_flight"), 0)
			w.endAll()
			assert.Zero(t, w.gauge("in_flight"))
			assert.True(t, w.enter(0))
			w.endAll()
		})
	}
}

// Signals jump with every sample, cannot be read, or are absurd while calls come: the rule
// lets calls pass again soon after the signal is well.
func TestThresholdRecoversFromSignalsThatJump(t *testing.T) {
	t.Parallel()
	for _, idle := range []time.Duration{20 * time.Millisecond, 3 * time.Second} { // between calls
		t.Run(fmt.Sprint("a call every ", idle), func(t *testing.T) {
			t.Parallel()
			w := newWorkplace(t, adaptive.Rule{Strategy: adaptive.Threshold, CPU: 0.8})
			for i := range 200 {
				w.cpu = []float64{0, 1e300, 0.9, -1, 5}[i%5]
				w.engine.SampleSignals()
				w.enter(time.Millisecond)
				w.advance(idle)
			}
			w.cpu = 0.1
			w.engine.SampleSignals()
			passed := 0
			for i := range 20_000 { // 1000 a second
				if w.enter(time.Millisecond) && i >= 15_000 {
					passed++
				}
				w.advance(time.Millisecond)
			}
			assert.Equal(t, 5000, passed)
		})
	}
}

// A caller who gives itself another name with each call gets no more of the calls that
// pass than one in proportion.
func TestNamesOfCallersMadeUpGainNothing(t *testing.T) {
	for name, r := range map[string]adaptive.Rule{
		"threshold": {Strategy: adaptive.Threshold, Concurrency: 10},
		"qps":       {Strategy: adaptive.Threshold, QPS: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkplace(t, r)
			var honest, forged int
			for i := range 300_000 { // 4000 a second come, 1000 can pass
				if i%2 == 0 {
					if w.enter(10*time.Millisecond, core.Origin(fmt.Sprint("honest-", i/2%200))) {
						honest++
					}
				} else if w.enter(10*time.Millisecond, core.Origin(fmt.Sprint("forged-", i))) {
					forged++
				}
				w.advance(250 * time.Microsecond)
			}
			t.Logf("honest callers: %d passed, one with other names each time: %d", honest, forged)
			assert.InEpsilon(t, honest, forged, 0.25)
		})
	}
}

// blockingSource is a source of signals that blocks.
type blockingSource struct {
	asked   atomic.Int64
	blocked chan struct{}
}

func (b *blockingSource) Read(context.Context, rule.Signal) (float64, error) {
	b.asked.Add(1)
	<-b.blocked
	return 0.5, nil
}

// The source of signals blocks while rules that read them go and come: calls, reloads and
// status go on, and only one goroutine waits for the source.
func TestBlockedSignalsHoldUpNothingElse(t *testing.T) {
	before := runtime.NumGoroutine()
	source := &blockingSource{blocked: make(chan struct{})}
	engine := core.New(core.Config{Signals: source, Logger: slog.New(slog.DiscardHandler)})
	reads := rules.Set{Adaptive: []adaptive.Rule{{Name: "system", Strategy: adaptive.Threshold, CPU: 0.8}}}
	for range 200 {
		require.NoError(t, engine.Load(reads))
		guard, err := engine.Entry(context.Background(), "r", core.Inbound())
		require.NoError(t, err)
		guard.Exit()
		require.Len(t, engine.Status().Signals, 1)
		require.NoError(t, engine.Load(rules.Set{}))
	}
	require.NoError(t, engine.Load(reads))
	for source.asked.Load() == 0 {
		runtime.Gosched()
	}
	assert.LessOrEqual(t, goroutinesAbove(before+2), 0, "one asks the source, one samples now")
	close(source.blocked)
	engine.Close()
	assert.Zero(t, goroutinesAbove(before))
}
