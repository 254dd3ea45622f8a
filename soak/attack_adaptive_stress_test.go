package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/signal"
)

// overload is a service under adaptive rules of all strategies, and under everything at once.
type overload struct {
	t      *testing.T
	clock  *clock.Virtual
	engine *core.Engine
	cpu    atomic.Uint64 // the signal, in thousandths
	errors sync.Map      // what was returned that nobody could expect

	underWay, most                     atomic.Int64 // of inbound calls
	passed, blocked, cancelled, closed atomic.Int64
}

const (
	overloadNames     = 40 // resources, of which most are overflow names
	overloadMostCalls = 5  // inbound calls under way
)

func newOverload(t *testing.T) *overload {
	s := &overload{t: t, clock: clock.NewVirtual(time.Unix(1_700_000_000, 0))}
	s.engine = core.New(core.Config{
		Clock: s.clock, Logger: slog.New(slog.DiscardHandler), MaxResources: 8, SignalInterval: -1,
		Signals: signal.Map{rule.SignalCPU: func(context.Context) (float64, error) { return float64(s.cpu.Load()) / 1000, nil }},
	})
	return s
}

// steadyAdaptive keep their strategies and targets: together, no more than their highest
// limit of inbound calls is under way.
func steadyAdaptive(random *rand.Rand) []adaptive.Rule {
	most := overloadMostCalls - random.IntN(2)
	return []adaptive.Rule{
		{Name: "all", MinLimit: 1 + random.IntN(most), MaxLimit: most, MaxDelay: time.Duration(1+random.IntN(50)) * time.Millisecond, FairBy: []string{"origin", "user"}[random.IntN(2)]},
		{Name: "system", Strategy: adaptive.Threshold, Concurrency: most, CPU: 0.8, AvgRT: 50 * time.Millisecond},
	}
}

// changingAdaptive returns rules that are others each time.
func changingAdaptive(random *rand.Rand) (list []adaptive.Rule) {
	for i := range 3 {
		r := adaptive.Rule{Name: fmt.Sprint("changing-", i), Shadow: random.IntN(5) == 0, Inbound: random.IntN(3) == 0}
		switch random.IntN(4) {
		case 0:
			continue
		case 1:
			r.Resource = fmt.Sprint("r", random.IntN(overloadNames))
		default:
			r.Match, r.Shared = "r*", random.IntN(2) == 0
		}
		if random.IntN(4) == 0 {
			r.Origin = []string{"a", rule.OtherOrigins}[random.IntN(2)]
		}
		switch r.Strategy = []adaptive.Strategy{adaptive.Latency, adaptive.Threshold}[random.IntN(2)]; r.Strategy {
		case adaptive.Threshold:
			r.QPS, r.Concurrency = float64(1+random.IntN(5000)), 1+random.IntN(30)
		default:
			r.MinLimit, r.MaxLimit = 1, 1+random.IntN(30)
		}
		list = append(list, r)
	}
	return list
}

func (s *overload) load(random *rand.Rand) {
	set := rules.Set{Adaptive: append(steadyAdaptive(random), changingAdaptive(random)...)}
	if random.IntN(4) == 0 {
		set.Isolation = []isolation.Rule{{Match: "r*", Shared: true, Limit: 3 + random.IntN(5), MaxWait: 20 * time.Millisecond, MaxQueue: 5}}
		set.Breaker = []breaker.Rule{{Match: "r*", Strategy: breaker.ErrorRatio, Threshold: 0.9, OpenFor: time.Millisecond, MinCalls: 10}}
	}
	if random.IntN(4) == 0 {
		set.Flow = []flow.Rule{{Match: "r*", Shared: true, Limit: 20_000, Algorithm: flow.Throttle, MaxWait: 5 * time.Millisecond}}
		set.Fault = []fault.Rule{{
			Match: "r*", Percent: 10, Delay: time.Millisecond, Abort: fault.Abort{HTTP: 500}, Until: time.Unix(1_800_000_000, 0),
		}}
	}
	if err := s.engine.Load(set); err != nil && !errors.Is(err, core.ErrClosed) {
		s.errors.Store(err.Error(), true)
	}
}

func (s *overload) call(random *rand.Rand) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	opts := []core.Option{
		core.Priority(rule.PriorityCritical - rule.Priority(random.IntN(5))), core.Tokens(1 + random.IntN(3)),
		core.String("user", fmt.Sprint(random.IntN(1000))),
	}
	inbound := random.IntN(4) > 0
	if inbound {
		opts = append(opts, core.Inbound())
	}
	if n := random.IntN(4); n > 0 {
		opts = append(opts, core.Origin([]string{"a", "b", fmt.Sprint(random.IntN(100))}[n-1]))
	}
	switch random.IntN(5) {
	case 0:
		opts = append(opts, core.NoWait())
	case 1:
		go func() {
			runtime.Gosched()
			cancel()
		}()
	}
	guard, err := s.engine.Entry(ctx, fmt.Sprint("r", random.IntN(overloadNames)), opts...)
	switch {
	case err == nil:
		s.pass(&guard, random, inbound)
	case errors.Is(err, core.ErrBlocked):
		s.blocked.Add(1)
	case errors.Is(err, context.Canceled):
		s.cancelled.Add(1)
	case errors.Is(err, core.ErrClosed):
		s.closed.Add(1)
	default:
		s.errors.Store(err.Error(), true)
	}
	guard.Exit() // a second time, or of a call that did not pass
}

func (s *overload) pass(guard *core.Guard, random *rand.Rand, inbound bool) {
	s.passed.Add(1)
	if inbound {
		now := s.underWay.Add(1)
		for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
		}
	}
	for range random.IntN(20) {
		runtime.Gosched()
	}
	switch random.IntN(6) {
	case 0:
		guard.Fail(errors.New("failed"))
	case 1:
		guard.MarkIgnored()
	case 2:
		guard.Settle(random.IntN(10))
	}
	if inbound {
		s.underWay.Add(-1) // before the guard exits
	}
	guard.Exit()
}

// gauges calls fn with each gauge of adaptive rules.
func (s *overload) gauges(fn func(rule, name string, value float64)) {
	list := adaptive.Kind().Gauges()
	for _, state := range s.engine.RuleStates(func(r rule.Rule) bool { return r.Key().Kind == "adaptive" }) {
		for i, value := range state.Gauges {
			fn(state.Name, list[i].Name, value)
		}
	}
}

// 64 goroutines call under adaptive rules of all strategies that are replaced all the time,
// with other kinds of rules beside them. Calls give up waiting, do not want to wait, fail,
// and are settled; names overflow; the engine is closed while some wait. At rest nothing is
// under way or waits, and never are more calls under way than the highest limit of a rule
// that stays.
func TestAdaptiveRulesLoseNoCallWhateverIsReloaded(t *testing.T) {
	before := runtime.NumGoroutine()
	s := newOverload(t)
	s.load(rand.New(rand.NewPCG(0, 0)))
	var callers, others sync.WaitGroup
	done := make(chan struct{})
	for g := range 64 {
		callers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(g)))
			for range 500 {
				s.call(random)
			}
		})
	}
	background := func(step func()) {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					step()
					runtime.Gosched()
				}
			}
		})
	}
	random, signals := rand.New(rand.NewPCG(2, 2)), rand.New(rand.NewPCG(3, 3))
	background(func() { s.clock.Advance(200 * time.Microsecond) })
	background(func() { s.load(random) })
	background(func() {
		s.cpu.Store(uint64(signals.IntN(1200)))
		s.engine.SampleSignals()
		state := []string{"off", ""}[signals.IntN(2)]
		if err := s.engine.Control(core.Scope{Kind: "fault"}, state); err != nil && !errors.Is(err, core.ErrClosed) {
			s.errors.Store(err.Error(), true)
		}
		s.engine.Explain("r1")
		s.engine.Status()
	})
	callers.Wait()
	s.checkRest()
	for g := range 64 { // some wait while the engine is closed
		callers.Go(func() {
			random := rand.New(rand.NewPCG(4, uint64(g)))
			for s.closed.Load() < 64 {
				s.call(random)
			}
		})
	}
	s.engine.Close()
	callers.Wait()
	close(done)
	others.Wait()
	assert.Zero(t, goroutinesAbove(before), "goroutines are left")
	s.errors.Range(func(err, _ any) bool {
		t.Errorf("an error that nobody could expect: %v", err)
		return true
	})
}

func (s *overload) checkRest() {
	s.t.Logf("%d passed, %d blocked, %d cancelled; at most %d under way",
		s.passed.Load(), s.blocked.Load(), s.cancelled.Load(), s.most.Load())
	require.Positive(s.t, s.passed.Load())
	require.Positive(s.t, s.blocked.Load())
	require.Positive(s.t, s.cancelled.Load())
	assert.LessOrEqual(s.t, s.most.Load(), int64(overloadMostCalls))
	s.gauges(func(rule, name string, value float64) {
		switch name {
		case "in_flight", "queued":
			assert.True(s.t, value == 0 || math.IsNaN(value), "%s of %q at rest: %v", name, rule, value)
		case "limit":
			assert.False(s.t, value < 1 || value > 1e6, "limit of %q: %v", rule, value)
		}
	})
}
