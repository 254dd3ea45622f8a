package core_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// Whatever an engine was given before, and in whatever order, calls are held
// against what is in force now, in its order, and rules that stayed have kept what
// they counted.
func TestStateDependsOnlyOnTheRulesInForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newLoaded(t)
		defer m.engine.Close()
		source := func() *sourceModel { return rapid.SampledFrom(m.sources).Draw(t, "source") }
		t.Repeat(map[string]func(*rapid.T){
			"load":    func(*rapid.T) { m.load(m.drawRules()) },
			"shuffle": func(t *rapid.T) { m.load(rapid.Permutation(m.code).Draw(t, "code")) },
			"apply": func(*rapid.T) {
				if s := source(); s.running {
					m.apply(s)
				}
			},
			"apply more": func(*rapid.T) {
				if s := source(); s.running {
					m.apply(s)
				}
			},
			"call": func(*rapid.T) {
				m.call(rapid.SampledFrom(loadedNames).Draw(t, "name"), rapid.SampledFrom(modelOrigins).Draw(t, "origin"))
				m.judge()
			},
			"rest": func(*rapid.T) { m.rest() },
			"confirm": func(*rapid.T) {
				s := source()
				back := m.statusOf(s).HeldBack
				require.Equal(t, back != nil, m.engine.Confirm(s.name) == nil)
				m.judge()
				require.True(t, back == nil || m.statusOf(s).HeldBack == nil)
			},
			"end or follow": func(*rapid.T) {
				if s := source(); s.running {
					m.end(s)
				} else {
					m.follow(s)
				}
				m.judge()
			},
			"try again": func(*rapid.T) { m.tryAgain() },
		})
		m.removeAll()
	})
}

func newLoaded(t *rapid.T) *loaded {
	m := &loaded{
		t: t, clock: clock.NewVirtual(begin), most: rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "most"),
		versions: map[[32]byte][]placed{}, lives: map[string]int{}, counts: map[loadedCount]int{},
		last: map[loadedCount]clock.Instant{}, logged: map[loadedCount]bool{}, unsure: map[loadedCount]bool{}, dropped: map[loadedCount]bool{}, former: map[string]formerRule{},
		known: map[string]bool{}, called: map[string]clock.Instant{},
	}
	m.engine = core.New(core.Config{Clock: m.clock, Logger: quiet, MaxResources: loadedRoom, MaxRemoval: m.most})
	for _, name := range []string{"s1", "s0"} {
		s := &sourceModel{memory: newMemory(name), held: map[string]*[32]byte{}}
		m.sources = append(m.sources, s)
		m.follow(s)
	}
	return m
}

func (m *loaded) follow(s *sourceModel) {
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	require.Eventually(m.t, func() bool { return m.engine.Follow(ctx, s) == nil }, 2*time.Minute, 10*time.Microsecond,
		"the engine does not know that it had ended")
	s.running = true
}

func (m *loaded) end(s *sourceModel) {
	s.stop()
	s.running = false
}

func (m *loaded) statusOf(s *sourceModel) core.SourceStatus {
	for _, of := range m.engine.Status().Sources {
		if of.Name == s.name {
			return of
		}
	}
	return core.SourceStatus{}
}

// judge compares the engine with what it should be by its own status.
func (m *loaded) judge() {
	before := m.inForce
	m.judgeStatus()
	m.succeed(before)
	for name := range m.named() {
		if !m.known[name] {
			m.meet(name)
		}
	}
	for _, r := range m.engine.Snapshot().Resources {
		require.True(m.t, m.known[r.Name] || r.Name == rule.OtherResources, "%s is not known: %v", r.Name, m.known)
	}
	for _, name := range loadedNames {
		for _, origin := range modelOrigins {
			m.explain(name, origin)
		}
	}
}

// judgeStatus reads what is in force.
func (m *loaded) judgeStatus() {
	status := m.engine.Status()
	m.given = nil
	for _, r := range m.code {
		m.given = append(m.given, placed{Rule: r})
	}
	for _, of := range status.Sources {
		for _, d := range of.Documents {
			for _, r := range m.versions[d.Digest] {
				r.created = d.Revision
				m.given = append(m.given, r)
			}
		}
	}
	m.inForce = slices.DeleteFunc(slices.Clone(m.given), func(r placed) bool {
		return slices.ContainsFunc(m.given, func(other placed) bool { return other.Name == r.Name && other.precedes(r) })
	})
	for i, of := range status.Sources {
		s := m.sources[i]
		require.Equal(m.t, s.name, of.Name)
		rules, seen := 0, 0
		for _, d := range of.Documents {
			held, there := s.held[d.Name]
			var here []placed
			if d.AppliedAt != 0 {
				var known bool
				here, known = m.versions[d.Digest]
				require.True(m.t, known)
			}
			waiting := len(here)
			for _, r := range m.inForce {
				if r.source == of.Name && r.document == d.Name {
					waiting--
				}
			}
			require.Equal(m.t, len(here)-waiting, d.Rules)
			rules += len(here)
			if there {
				seen++
			}
			isHeld := held != nil && d.AppliedAt != 0 && *held == d.Digest
			require.Equal(m.t, isHeld && waiting == 0, d.Rejected == nil, "%s of %s: %v", d.Name, s.name, d.Rejected)
			if !there {
				require.ErrorIs(m.t, d.Rejected, error(of.HeldBack))
			}
		}
		require.Len(m.t, s.held, seen)
		if back := of.HeldBack; back != nil {
			require.GreaterOrEqual(m.t, back.Rules, rules)
			require.Greater(m.t, float64(back.Removed), m.most*float64(back.Rules))
		}
	}
	names := map[string]bool{}
	for _, r := range m.inForce {
		require.False(m.t, names[r.Name], "%s is in force twice", r.Name)
		names[r.Name] = true
	}
	require.Equal(m.t, len(m.inForce), status.Rules)
	require.GreaterOrEqual(m.t, status.Revision, m.revision)
	m.revision = status.Revision
}

// explain compares what the engine says of a call with what should be.
func (m *loaded) explain(name, origin string) {
	want := applying(m.rulesInForce(), name, origin)
	found := m.engine.Explain(name, core.Origin(origin))
	require.Len(m.t, found, len(want), "%s from %q", name, origin)
	own := m.resourceOf(name, false)
	for i, of := range found {
		said := of.Rule.Value().(flow.Rule)
		require.Equal(m.t, want[i], said, "%s from %q", name, origin)
		at := m.inForce[slices.IndexFunc(m.inForce, func(r placed) bool { return r.Name == of.Name })]
		require.Equal(m.t, placed{said, of.Source, of.Document, of.Line, at.created}, at)
		if limiterOf(said) == byWindow && !m.unsure[m.countOf(said, own)] {
			require.EqualValues(m.t, int(of.Quota.Limit)-m.counts[m.countOf(said, own)], of.Quota.Remaining,
				"%s on %s, counted as %s", of.Name, name, own)
		}
	}
}

// tryAgain has the engine try until nothing changes; what is left out then
// clashes with what is in force.
func (m *loaded) tryAgain() {
	for range 8 {
		m.load(m.code)
	}
	for i, of := range m.engine.Status().Sources {
		if of.HeldBack != nil {
			continue
		}
		for _, d := range of.Documents {
			held := m.sources[i].held[d.Name]
			if d.Rejected == nil || held == nil {
				continue
			}
			require.True(m.t, slices.ContainsFunc(m.inForce, func(r placed) bool {
				elsewhere := r.source != of.Name || r.document != d.Name
				return elsewhere && slices.ContainsFunc(m.versions[*held], func(h placed) bool { return h.Name == r.Name })
			}), "%s of %s is left out for nothing: %v", d.Name, of.Name, d.Rejected)
		}
	}
}

// removeAll takes all rules out; then a slot is free again for as many names as
// there should be.
func (m *loaded) removeAll() {
	m.load(nil)
	for _, s := range m.sources {
		if !s.running {
			m.follow(s)
		}
		clear(s.held)
		s.put(core.Change{Complete: true})
		if m.engine.Confirm(s.name) == nil {
			require.Nil(m.t, m.statusOf(s).HeldBack)
		}
		m.judge()
	}
	require.Zero(m.t, m.engine.Status().Rules)
	m.rest()
	require.Empty(m.t, m.known)
	for i := range loadedRoom + 2 {
		m.call(fmt.Sprint("name ", i), "")
	}
	require.Len(m.t, m.engine.Snapshot().Resources, loadedRoom+1)
}
