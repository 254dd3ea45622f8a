package core_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/stat"
)

// model drives an engine and knows what it has promised.
type model struct {
	t       *rapid.T
	engine  *core.Engine
	clock   *clock.Virtual
	max     int // names beside those of rules
	rules   []flow.Rule
	lives   map[string]int
	vague   map[string]clock.Instant // see ledger
	ledgers map[ledgerKey]*ledger

	loads     int // sets
	last      modelCall
	waiting   []*modelCall
	guards    []*core.Guard
	want      stat.Totals
	seen      map[string]stat.Totals
	forgotten stat.Totals
}

func TestTheEngineBehavesLikeItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{
			t: t, clock: clock.NewVirtual(begin), max: rapid.SampledFrom([]int{2, 50}).Draw(t, "MaxResources"),
			lives: map[string]int{}, vague: map[string]clock.Instant{}, ledgers: map[ledgerKey]*ledger{}, seen: map[string]stat.Totals{},
		}
		m.engine = core.New(core.Config{Clock: m.clock, Logger: quiet, MaxResources: m.max})
		defer m.engine.Close()
		m.begin()
		t.Repeat(map[string]func(*rapid.T){
			"reload":  func(*rapid.T) { m.reload() },
			"change":  func(*rapid.T) { m.change() },
			"mistake": func(*rapid.T) { m.mistake() },
			"call":    func(*rapid.T) { m.calls(1) },
			"calls":   func(*rapid.T) { m.calls(6) },
			"exit":    func(*rapid.T) { m.exit() },
			"cancel":  func(*rapid.T) { m.cancel() },
			"a while": func(t *rapid.T) {
				m.advance(time.Duration(rapid.IntRange(1, 400).Draw(t, "ms")) * time.Millisecond)
			},
			"return":  func(*rapid.T) { m.comeBack() },
			"long":    func(t *rapid.T) { m.advance(time.Duration(rapid.IntRange(1, 200).Draw(t, "s")) * time.Second) },
			"explain": func(*rapid.T) { m.explain() },
		})
		m.finish()
	})
}

// explain checks which rules the engine says apply.
func (m *model) explain() {
	for _, name := range modelNames {
		for _, origin := range modelOrigins {
			var want, enforced, got, limits []string
			for _, r := range applying(m.rules, name, origin) {
				want = append(want, r.Name)
				if !r.Shadow {
					enforced = append(enforced, r.Name)
				}
			}
			for _, a := range m.engine.Explain(name, core.Origin(origin)) {
				got = append(got, a.Name)
			}
			for _, c := range m.engine.Quotas(name, core.Origin(origin)) {
				limits = append(limits, c.Name)
			}
			require.Equal(m.t, want, got, "%s from %q", name, origin)
			require.Equal(m.t, enforced, limits, "%s from %q", name, origin)
		}
	}
}

// finish lets everything end: nobody waits for ever, nothing stays refused, and
// nothing stays under way.
func (m *model) finish() {
	m.advance(time.Minute)
	require.Empty(m.t, m.waiting)
	for _, name := range modelNames {
		m.advance(10 * time.Minute)
		if !slices.ContainsFunc(applying(m.rules, name, "tv"), refusesForGood) {
			guard, err := m.engine.Entry(context.Background(), name, core.Origin("tv"))
			require.NoError(m.t, err, "after a long pause")
			m.want.Passed++
			m.want.InFlight++
			m.guards = append(m.guards, &guard)
			m.account()
		}
	}
	m.load(nil)
	for len(m.guards) > 0 {
		m.exit()
	}
	for _, r := range m.engine.Snapshot().Resources {
		assert.Zero(m.t, r.InFlight, r.Name)
		assert.Zero(m.t, r.Waiting, r.Name)
	}
}

// refusesForGood says whether a rule may refuse a call after a pause.
func refusesForGood(r flow.Rule) bool {
	return !r.Shadow && (r.Limit < 1 || r.WarmUp.Period > 0 && r.Limit < 3 || r.Related != "")
}
