package penstockprom_test

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/isolation"
	penstockprom "github.com/penstock-go/penstock/metrics/prometheus"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// valve is a kind of rule that only this test knows: it shuts after so many calls.
type valve struct {
	Name, Resource, Match string
	Shared                bool
	ShutsAfter            int
	Origin                string
	Shadow                bool
}

func valveKind() *rule.Type[valve] {
	common := func(v *valve) rule.Common {
		return rule.Common{
			Name: &v.Name, Resource: &v.Resource, Match: &v.Match, Shared: &v.Shared, Origin: &v.Origin, Shadow: &v.Shadow,
		}
	}
	return rule.Define(rule.Spec[valve]{
		Kind: "safetyValve", Phase: rule.PhaseHealth, Reason: rule.Unavailable, Common: common,
		Fields: []rule.Field[valve]{
			rule.FieldOf("shutsAfter", func(v *valve) *int { return &v.ShutsAfter }).Says("calls that pass"),
		},
		New: func(v *valve, env rule.Env) rule.Limiter { return &valveLimiter{rule: v, env: env} },
		Adopt: func(present rule.Limiter, v *valve, env rule.Env) rule.Limiter {
			return &valveLimiter{rule: v, env: env, passed: present.(*valveLimiter).passed}
		},
		Gauges: []rule.Gauge{{Name: "passed", Help: "Calls that passed."}, {Name: "left", Help: "Calls that still pass."}},
		States: []string{"fresh", "worn", "shut"},
	})
}

// valveLimiter is for one goroutine.
type valveLimiter struct {
	rule   *valve
	env    rule.Env
	passed int
}

func (l *valveLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	if l.passed == l.rule.ShutsAfter {
		return 0, rule.Block
	}
	before := l.state()
	l.passed++
	if after := l.state(); after != before {
		l.env.Changed(c.Now, before, after, "")
	}
	return 0, rule.Pass
}

func (l *valveLimiter) state() string {
	switch l.passed {
	case 0:
		return "fresh"
	case l.rule.ShutsAfter:
		return "shut"
	}
	return "worn"
}

func (l *valveLimiter) GiveBack(clock.Instant, rule.Ticket, int32) { l.passed-- }
func (l *valveLimiter) RetryAfter(rule.Call) time.Duration         { return rule.Never }
func (l *valveLimiter) Idle(clock.Instant) bool                    { return l.passed == 0 }
func (l *valveLimiter) Status(clock.Instant) rule.Status {
	return rule.Status{State: l.state(), Gauges: []float64{float64(l.passed), float64(l.rule.ShutsAfter - l.passed)}}
}

// onlyOf returns the series of a scrape whose names begin so, and are not 0.
func onlyOf(all series, prefixes ...string) series {
	of := make(series)
	for key, value := range all {
		if value != 0 && slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			of[key] = value
		}
	}
	return of
}

func TestCustomKindIsExposed(t *testing.T) {
	kind := valveKind()
	s := newService(t, core.Config{Kinds: []rule.Definition{kind}})
	defer s.Close()
	require.NoError(t, s.Load(rules.Set{Custom: []rule.Rule{
		kind.Of(valve{Name: "own", Resource: "pay", ShutsAfter: 3}),
		kind.Of(valve{Name: "all", Match: "mail:*", Shared: true, ShutsAfter: 2}),
		kind.Of(valve{Name: "tried", Resource: "pay", ShutsAfter: 1, Shadow: true}),
	}}))
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{})
	s.calls("pay", 2)
	assert.Equal(t, series{
		`penstock_safety_valve_state{resource="pay",rule="own",state="worn"}`:                         1,
		`penstock_safety_valve_state{resource="pay",rule="tried",state="shut"}`:                       1,
		`penstock_safety_valve_passed{resource="pay",rule="own"}`:                                     2,
		`penstock_safety_valve_left{resource="pay",rule="own"}`:                                       1,
		`penstock_safety_valve_passed{resource="pay",rule="tried"}`:                                   1,
		`penstock_safety_valve_transitions_total{from="fresh",resource="pay",rule="own",to="worn"}`:   1,
		`penstock_safety_valve_transitions_total{from="fresh",resource="pay",rule="tried",to="shut"}`: 1,
		`penstock_rule_shadow_blocked_total{kind="safetyValve",resource="pay",rule="tried"}`:          1,
	}, onlyOf(scrape(t, collector), "penstock_safety_valve", "penstock_rule_"))

	s.calls("pay", 3)
	s.calls("mail:a", 1)
	s.calls("mail:b", 2)
	all := scrape(t, collector)
	assert.InDelta(t, 1, all[`penstock_safety_valve_state{resource="mail:*",rule="all",state="shut"}`], 0)
	assert.InDelta(t, 0, all[`penstock_safety_valve_state{resource="mail:*",rule="all",state="worn"}`], 0)
	assert.InDelta(t, 2, all[`penstock_safety_valve_passed{resource="mail:*",rule="all"}`], 0)
	assert.Len(t, all.of("penstock_safety_valve_state"), 9, "each state of each rule, one that resources share once")
	assert.InDelta(t, 2, all[`penstock_rule_blocked_total{kind="safetyValve",resource="pay",rule="own"}`], 0)
	assert.InDelta(t, 1, all[`penstock_rule_blocked_total{kind="safetyValve",resource="mail:b",rule="all"}`], 0)
	problems, err := testutil.CollectAndLint(collector)
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestBreakersAndIsolationAreExposed(t *testing.T) {
	s := newService(t, core.Config{})
	defer s.Close()
	require.NoError(t, s.Load(rules.Set{
		Breaker:   []breaker.Rule{{Name: "pay", Resource: "pay", Threshold: 0.5, MinCalls: 2, Probes: 1}},
		Isolation: []isolation.Rule{{Name: "pay", Resource: "pay", Limit: 3}},
	}))
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{})
	for range 2 {
		require.True(t, s.call("pay", time.Millisecond, assert.AnError))
	}
	require.False(t, s.call("pay", 0, nil))
	assert.Equal(t, series{
		`penstock_breaker_state{resource="pay",rule="pay",state="open"}`:                        1,
		`penstock_breaker_open_seconds{resource="pay",rule="pay"}`:                              5,
		`penstock_breaker_transitions_total{from="closed",resource="pay",rule="pay",to="open"}`: 1,
		`penstock_isolation_limit{resource="pay",rule="pay"}`:                                   3,
		`penstock_isolation_highest{resource="pay",rule="pay"}`:                                 1,
		`penstock_rule_blocked_total{kind="breaker",resource="pay",rule="pay"}`:                 1,
	}, onlyOf(scrape(t, collector), "penstock_breaker", "penstock_isolation", "penstock_rule_"))

	s.clock.Advance(5 * time.Second)
	guard, err := s.Entry(t.Context(), "pay")
	require.NoError(t, err)
	all := scrape(t, collector)
	assert.InDelta(t, 1, all[`penstock_breaker_state{resource="pay",rule="pay",state="halfOpen"}`], 0)
	assert.InDelta(t, 1, all[`penstock_isolation_in_flight{resource="pay",rule="pay"}`], 0)
	guard.Exit()
	all = scrape(t, collector)
	assert.InDelta(t, 1, all[`penstock_breaker_state{resource="pay",rule="pay",state="closed"}`], 0)
	transitions := slices.Collect(maps.Keys(onlyOf(all, "penstock_breaker_transitions_total")))
	assert.Len(t, transitions, 3)
	assert.InDelta(t, 3, all.sum("penstock_breaker_transitions_total"), 0)
}

// The metrics that rules of every kind have are not for gauges: package rules knows them.
func TestGaugesCannotHaveTheNamesOfMetricsOfAllKinds(t *testing.T) {
	e := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer e.Close()
	descriptions := make(chan *prometheus.Desc, 1000)
	penstockprom.NewCollector(e, penstockprom.Options{}).Describe(descriptions)
	close(descriptions)
	refused := 0
	for description := range descriptions {
		_, name, _ := strings.Cut(description.String(), `fqName: "`)
		name, _, _ = strings.Cut(name, `"`)
		for _, kind := range e.Kinds() {
			short, isOfKind := strings.CutPrefix(name, rule.MetricName(kind.Kind(), ""))
			isGauge := slices.ContainsFunc(kind.Gauges(), func(g rule.Gauge) bool { return g.MetricName(kind.Kind()) == name })
			if isOfKind && !isGauge {
				refused++
				assert.Panics(t, func() { rules.NewTable(probeKind(short)) }, name)
			}
		}
	}
	assert.Greater(t, refused, 10)
}

// probeKind is a kind of which all limits can be for a fleet, with a gauge of a name.
func probeKind(gauge string) *rule.Type[valve] {
	return rule.Define(rule.Spec[valve]{
		Kind: "probe",
		Common: func(v *valve) rule.Common {
			return rule.Common{
				Name: &v.Name, Resource: &v.Resource, Match: &v.Match, Shared: &v.Shared, Origin: &v.Origin, Shadow: &v.Shadow,
			}
		},
		New:    func(v *valve, env rule.Env) rule.Limiter { return &valveLimiter{rule: v, env: env} },
		Fleet:  func(*valve) bool { return true },
		Gauges: []rule.Gauge{{Name: gauge, Help: "Whatever."}},
	})
}
