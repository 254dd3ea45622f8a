package core_test

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// begin puts a first set in force.
func (m *model) begin() {
	var first []flow.Rule
	for _, name := range modelRules {
		first = append(first, drawRule(m.t, name))
	}
	m.load(first)
}

// reload puts another set in force, of which some rules may be the same.
func (m *model) reload() {
	var next []flow.Rule
	for _, name := range modelRules {
		switch rapid.IntRange(0, 3).Draw(m.t, name) {
		case 0:
			next = append(next, drawRule(m.t, name))
		case 1, 2:
			for _, r := range m.rules {
				if r.Name == name {
					next = append(next, r)
				}
			}
		}
	}
	m.load(next)
}

// change changes one rule in a way that keeps its state.
func (m *model) change() {
	if len(m.rules) == 0 {
		m.t.Skip("no rules")
	}
	next := slices.Clone(m.rules)
	r := &next[rapid.IntRange(0, len(next)-1).Draw(m.t, "rule")]
	switch rapid.IntRange(0, 3).Draw(m.t, "what") {
	case 0:
		r.Limit = rapid.SampledFrom([]float64{4, 6, 1, 0, 0.5, 2}).Draw(m.t, "limit")
	case 1:
		r.Shadow = !r.Shadow
	case 2:
		r.Origin = rapid.SampledFrom([]string{"", "mobile", rule.OtherOrigins}).Draw(m.t, "origin")
	case 3:
		r.Window = rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second}).Draw(m.t, "window")
	}
	m.load(next)
}

func (m *model) load(next []flow.Rule) {
	for _, r := range next {
		require.Empty(m.t, flow.Kind().Faults(r), "%+v", r)
	}
	before := m.rules
	m.rules = next
	m.loads++
	require.NoError(m.t, m.engine.Load(rules.Set{Flow: next}))
	for _, was := range before {
		i := slices.IndexFunc(next, func(r flow.Rule) bool { return r.Name == was.Name })
		switch {
		case i < 0 || !keepsState(was, next[i]):
			m.lives[was.Name]++
			if i >= 0 {
				m.vague[was.Name] = m.clock.Now().Add(2 * next[i].Window) // what has passed may count there
			}
		case next[i] != was:
			m.changed(was, next[i])
		}
	}
	for _, is := range next {
		gone := !slices.ContainsFunc(before, func(r flow.Rule) bool { return r.Name == is.Name })
		if gone && m.lives[is.Name] > 0 { // it may go on where it was taken out
			m.vague[is.Name] = m.clock.Now().Add(2 * is.Window)
		}
	}
	m.settle()
}

// changed notes that what a rule has counted counts differently now.
func (m *model) changed(was, is flow.Rule) {
	now := m.clock.Now()
	for key, l := range m.ledgers {
		if key.rule != is.Name || key.life != m.lives[is.Name] {
			continue
		}
		if was.Window != is.Window || was.Buckets != is.Buckets || was.Strict != is.Strict {
			l.vague = now.Add(2*was.Window + 2*is.Window)
			// What the old window has let go of is forgotten, also by a longer one.
			l.passes = slices.DeleteFunc(l.passes, func(p ledgerPass) bool { return !holds(was, p.at, now) })
		}
		l.changed = len(l.passes)
	}
}

func (m *model) mistake() {
	status := m.engine.Status()
	bad := slices.Clone(m.rules)
	for i := range bad {
		bad[i].Limit++
	}
	bad = append(bad, flow.Rule{Name: "bad", Resource: "a", Limit: -1})
	require.Error(m.t, m.engine.Load(rules.Set{Flow: bad}))
	require.Equal(m.t, status, m.engine.Status())
	m.explain()
}
