package core_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// gauge is a kind of rules that refuse calls while a signal is above a half.
type gauge struct {
	Name, Resource, Match string
	Shared                bool
	Origin                string
	Shadow                bool
	Signal                rule.Signal
}

func gaugeCommon(g *gauge) rule.Common {
	return rule.Common{
		Name: &g.Name, Resource: &g.Resource, Match: &g.Match, Shared: &g.Shared, Origin: &g.Origin, Shadow: &g.Shadow,
	}
}

func gaugeKind() *rule.Type[gauge] {
	return rule.Define(rule.Spec[gauge]{
		Kind: "gauge", Phase: rule.PhaseOverload, Reason: rule.Overloaded, Common: gaugeCommon,
		Signals: func(g *gauge) []rule.Signal { return []rule.Signal{g.Signal} },
		Answer:  func(*gauge) rule.Answer { return rule.Answer{HTTP: 529, GRPC: "ABORTED"} },
		New: func(g *gauge, env rule.Env) rule.Limiter {
			reading := env.Signals.Reading(g.Signal)
			return &toy{decide: func(rule.Call) rule.Decision {
				if value, ok := reading.Load(); ok && value > 0.5 {
					return rule.Block
				}
				return rule.Pass
			}}
		},
	})
}

// readings is a source of signals for tests.
type readings struct {
	mu     sync.Mutex
	values map[rule.Signal]float64
	reads  map[rule.Signal]int
}

func (r *readings) Read(_ context.Context, signal rule.Signal) (float64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads[signal]++
	value, ok := r.values[signal]
	if !ok {
		return 0, errors.New("no such signal here")
	}
	return value, nil
}

func (r *readings) set(signal rule.Signal, value float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values[signal] = value
}

func (r *readings) forget(signal rule.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.values, signal)
}

func (r *readings) count(signal rule.Signal) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reads[signal]
}

func newReadings(values map[rule.Signal]float64) *readings {
	return &readings{values: values, reads: make(map[rule.Signal]int)}
}

func loadGauges(t *testing.T, e *core.Engine, gauges ...gauge) {
	t.Helper()
	var set rules.Set
	for _, g := range gauges {
		set.Custom = append(set.Custom, gaugeKind().Of(g))
	}
	require.NoError(t, e.Load(set))
}

func TestOnlySignalsThatRulesReadAreSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newReadings(map[rule.Signal]float64{rule.SignalCPU: 0.9, rule.SignalMemory: 0.9})
		e := core.New(core.Config{Logger: quiet, Kinds: []rule.Definition{gaugeKind()}, Signals: source})
		defer e.Close()
		time.Sleep(time.Minute)
		require.Zero(t, source.count(rule.SignalCPU))
		require.Empty(t, e.Status().Signals)

		loadGauges(t, e, gauge{Resource: "r", Signal: rule.SignalCPU})
		synctest.Wait()
		require.Zero(t, enter(e, "r", 1))
		time.Sleep(time.Second + time.Millisecond)
		require.Equal(t, 5, source.count(rule.SignalCPU), "at once, and then every 250 ms")
		require.Zero(t, source.count(rule.SignalMemory))
		source.set(rule.SignalCPU, 0.2)
		time.Sleep(250 * time.Millisecond)
		require.Equal(t, 1, enter(e, "r", 1))

		loadGauges(t, e)
		time.Sleep(time.Minute)
		require.Equal(t, 6, source.count(rule.SignalCPU))
		require.Empty(t, e.Status().Signals)

		loadGauges(t, e, gauge{Resource: "r", Signal: rule.SignalCPU})
		synctest.Wait()
		require.InDelta(t, 0.2, e.Status().Signals[0].Value, 0)
		require.NoError(t, e.Status().Signals[0].Err)
	})
}

func TestSignalThatNoRuleHasReadForLongIsUnknown(t *testing.T) {
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{
		Clock: c, Logger: quiet, Kinds: []rule.Definition{gaugeKind()}, SignalInterval: -time.Second,
		Signals: newReadings(map[rule.Signal]float64{rule.SignalCPU: 0.9}),
	})
	t.Cleanup(e.Close)
	loadGauges(t, e, gauge{Resource: "r", Signal: rule.SignalCPU})
	require.Equal(t, 1, enter(e, "r", 1), "nothing is known before the first sample")
	e.SampleSignals()
	for _, pause := range []time.Duration{4 * time.Second, 4*time.Second + 1} {
		loadGauges(t, e)
		c.Advance(pause)
		loadGauges(t, e, gauge{Resource: "r", Signal: rule.SignalCPU})
		status := e.Status().Signals
		require.Len(t, status, 1)
		if pause == 4*time.Second {
			require.InDelta(t, 0.9, status[0].Value, 0)
			e.SampleSignals()
			continue
		}
		require.Error(t, status[0].Err)
		require.Zero(t, status[0].At)
		require.Equal(t, 1, enter(e, "r", 1))
	}
}

func TestChangedRuleGoesOnWithTheSignalsItReads(t *testing.T) {
	source := newReadings(map[rule.Signal]float64{rule.SignalCPU: 0.9})
	e := core.New(core.Config{
		Clock: clock.NewVirtual(begin), Logger: quiet, Kinds: []rule.Definition{gaugeKind()}, Signals: source, SignalInterval: -1,
	})
	t.Cleanup(e.Close)
	loadGauges(t, e, gauge{Name: "g", Resource: "r", Signal: rule.SignalCPU})
	require.Equal(t, 1, enter(e, "r", 1))
	e.SampleSignals()
	require.Zero(t, enter(e, "r", 1))
	for _, changed := range []gauge{
		{Name: "g", Resource: "r", Signal: rule.SignalCPU, Origin: rule.OtherOrigins}, // the same calls
		{Name: "g", Match: "r", Signal: rule.SignalCPU},                               // other calls
		{Name: "h", Resource: "r", Signal: rule.SignalCPU},                            // another rule
	} {
		loadGauges(t, e, changed)
		require.Zero(t, enter(e, "r", 1), "%+v", changed)
		require.Len(t, e.Status().Signals, 1)
	}
	loadGauges(t, e, gauge{Name: "h", Resource: "r", Signal: rule.SignalLoad})
	require.Equal(t, 1, enter(e, "r", 1))
	require.Equal(t, rule.SignalLoad, e.Status().Signals[0].Signal)
}

func TestSignalThatCannotBeReadIsLoggedOnceAndLetsCallsPass(t *testing.T) {
	var log bytes.Buffer
	source := newReadings(map[rule.Signal]float64{rule.SignalCPU: 0.9})
	e := core.New(core.Config{
		Clock: clock.NewVirtual(begin), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Kinds: []rule.Definition{gaugeKind()}, Signals: source, SignalInterval: -1,
	})
	t.Cleanup(e.Close)
	loadGauges(t, e, gauge{Name: "g", Resource: "r", Signal: rule.SignalCPU})
	e.SampleSignals()
	require.Zero(t, enter(e, "r", 1))
	source.forget(rule.SignalCPU)
	for range 3 {
		e.SampleSignals()
		require.Equal(t, 1, enter(e, "r", 1))
	}
	require.ErrorContains(t, e.Status().Signals[0].Err, "no such signal here")
	require.Equal(t, 1, strings.Count(log.String(), "cannot be read"), log.String())
	require.Contains(t, log.String(), `gauge \"g\"`)
	source.set(rule.SignalCPU, 0.8)
	e.SampleSignals()
	require.Zero(t, enter(e, "r", 1))
	require.Equal(t, 1, strings.Count(log.String(), "can be read again"), log.String())
}

func TestRuleThatComesWhileItsSignalCannotBeReadIsLogged(t *testing.T) {
	var log bytes.Buffer
	e := core.New(core.Config{
		Clock: clock.NewVirtual(begin), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Kinds: []rule.Definition{gaugeKind()}, Signals: newReadings(nil), SignalInterval: -1,
	})
	t.Cleanup(e.Close)
	first, second := gauge{Name: "g", Resource: "r", Signal: rule.SignalCPU}, gauge{Name: "h", Resource: "r", Signal: rule.SignalCPU}
	for i, gauges := range [][]gauge{{first}, {first, second}, {second}, {first, second}} {
		loadGauges(t, e, gauges...)
		e.SampleSignals()
		e.SampleSignals()
		require.Equal(t, []int{1, 2, 2, 3}[i], strings.Count(log.String(), "cannot be read"), log.String())
	}
	second.Shadow = true
	loadGauges(t, e, first, second)
	e.SampleSignals()
	require.Equal(t, 3, strings.Count(log.String(), "cannot be read"), "no rule came")
}

func TestRuleMayNameASignalTwice(t *testing.T) {
	twice := rule.Define(rule.Spec[gauge]{
		Kind: "twice", Phase: rule.PhaseOverload, Reason: rule.Overloaded, Common: gaugeCommon,
		Signals: func(g *gauge) []rule.Signal { return []rule.Signal{g.Signal, g.Signal} },
		New:     func(*gauge, rule.Env) rule.Limiter { return &toy{} },
	})
	synctest.Test(t, func(t *testing.T) {
		source := newReadings(map[rule.Signal]float64{rule.SignalCPU: 0.9})
		e := core.New(core.Config{Logger: quiet, Kinds: []rule.Definition{gaugeKind(), twice}, Signals: source})
		defer e.Close()
		g := gauge{Resource: "r", Signal: rule.SignalCPU}
		require.NoError(t, e.Load(rules.Set{Custom: []rule.Rule{twice.Of(g)}}))
		synctest.Wait()
		loadGauges(t, e)
		loadGauges(t, e, g)
		synctest.Wait()
		require.Equal(t, 2, source.count(rule.SignalCPU), "the rule that remains has its signal sampled")
		loadGauges(t, e)
		time.Sleep(time.Minute)
		require.Equal(t, 2, source.count(rule.SignalCPU))
	})
}

// failingSource says a number together with an error.
type failingSource struct{}

func (failingSource) Read(context.Context, rule.Signal) (float64, error) {
	return 1, errors.New("broken")
}

func TestNumberThatComesWithAnErrorIsNeverSeen(t *testing.T) {
	var reading *rule.Reading
	kind := rule.Define(rule.Spec[gauge]{
		Kind: "gauge", Phase: rule.PhaseOverload, Reason: rule.Overloaded, Common: gaugeCommon,
		Signals: func(g *gauge) []rule.Signal { return []rule.Signal{g.Signal} },
		New: func(g *gauge, env rule.Env) rule.Limiter {
			reading = env.Signals.Reading(g.Signal)
			return &toy{}
		},
	})
	e := core.New(core.Config{
		Clock: clock.NewVirtual(begin), Logger: quiet, Kinds: []rule.Definition{kind}, Signals: failingSource{}, SignalInterval: -1,
	})
	t.Cleanup(e.Close)
	require.NoError(t, e.Load(rules.Set{Custom: []rule.Rule{kind.Of(gauge{Resource: "r", Signal: rule.SignalCPU})}}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 50_000 {
			e.SampleSignals()
		}
	}()
	for {
		for range 1000 {
			if _, ok := reading.Load(); ok {
				require.Fail(t, "the number was seen")
			}
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

func TestEngineWithoutASourceSaysWhatToDo(t *testing.T) {
	e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, Kinds: []rule.Definition{gaugeKind()}, SignalInterval: -1})
	t.Cleanup(e.Close)
	loadGauges(t, e, gauge{Resource: "r", Signal: rule.SignalCPU})
	e.SampleSignals()
	require.Equal(t, 1, enter(e, "r", 1))
	require.ErrorContains(t, e.Status().Signals[0].Err, "set core.Config.Signals")
}

func TestRefusalCarriesTheAnswerOfItsRule(t *testing.T) {
	e := core.New(core.Config{
		Clock: clock.NewVirtual(begin), Logger: quiet, Kinds: []rule.Definition{gaugeKind()},
		Signals: newReadings(map[rule.Signal]float64{rule.SignalCPU: 1}), SignalInterval: -1,
	})
	t.Cleanup(e.Close)
	loadGauges(t, e, gauge{Resource: "r", Signal: rule.SignalCPU})
	e.SampleSignals()
	_, err := e.Entry(t.Context(), "r")
	var blocked *core.BlockError
	require.ErrorAs(t, err, &blocked)
	require.Equal(t, rule.Answer{HTTP: 529, GRPC: "ABORTED"}, blocked.Answer)
}

// hintedKind is a kind of rules that read a signal if it is to be had.
func hintedKind() *rule.Type[gauge] {
	return rule.Define(rule.Spec[gauge]{
		Kind: "hinted", Phase: rule.PhaseOverload, Reason: rule.Overloaded, Common: gaugeCommon,
		Hints: func(g *gauge) []rule.Signal { return []rule.Signal{g.Signal} },
		New: func(*gauge, rule.Env) rule.Limiter {
			return &toy{decide: func(rule.Call) rule.Decision { return rule.Pass }}
		},
	})
}

// A rule that can do without a signal reads it if the engine has a source. If not, or if the source cannot
// read it, that is no fault to be logged, unless another rule needs it.
func TestSignalsThatRulesCanDoWithoutAreReadIfTheyAreToBeHad(t *testing.T) {
	hinted := func(source core.SignalSource) (*core.Engine, *lines, rules.Set) {
		log := new(lines)
		e := core.New(core.Config{
			Logger: slog.New(slog.NewTextHandler(log, nil)), Kinds: []rule.Definition{gaugeKind(), hintedKind()}, Signals: source, SignalInterval: -1,
		})
		t.Cleanup(e.Close)
		set := rules.Set{Custom: []rule.Rule{hintedKind().Of(gauge{Resource: "r", Signal: rule.SignalCPU})}}
		require.NoError(t, e.Load(set))
		e.SampleSignals()
		return e, log, set
	}
	e, log, _ := hinted(nil)
	require.Empty(t, e.Status().Signals)
	require.Zero(t, log.with(lost))

	source := newReadings(map[rule.Signal]float64{rule.SignalCPU: 0.9})
	e, log, set := hinted(source)
	require.InDelta(t, 0.9, e.Status().Signals[0].Value, 0)
	source.forget(rule.SignalCPU)
	e.SampleSignals()
	require.Error(t, e.Status().Signals[0].Err)
	require.Zero(t, log.with(lost))

	set.Custom = append(set.Custom, gaugeKind().Of(gauge{Resource: "r", Signal: rule.SignalCPU}))
	require.NoError(t, e.Load(set))
	e.SampleSignals()
	require.Equal(t, 1, log.with(lost), "another rule needs it")
}
