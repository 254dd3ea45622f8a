package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	fleetmemory "github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// told returns the events after an ID in short.
func told(e *core.Engine, after uint64) (texts []string) {
	events, _ := e.Events(after)
	for _, of := range events {
		var words []string
		for _, word := range []string{
			string(of.Type), of.Source, of.Document, of.Resource, string(of.Kind), of.Rule, of.From, of.To, of.Forced, of.Text, of.Err,
		} {
			if word != "" {
				words = append(words, word)
			}
		}
		texts = append(texts, strings.Join(words, "|"))
	}
	return texts
}

func TestEventsTellWhatHappened(t *testing.T) {
	e, c := newEngine(t)
	require.NoError(t, e.Load(rules.Set{
		Flow:    []flow.Rule{{Name: "none", Resource: "none"}},
		Breaker: []breaker.Rule{{Name: "b", Resource: "r", Threshold: 0.5}},
	}))
	enter(e, "r", 1)
	require.NoError(t, e.Control(core.Scope{Kind: rules.KindBreaker, Rule: "b"}, breaker.Open))
	require.NoError(t, e.Control(core.Scope{Kind: rules.KindBreaker}, breaker.Closed))
	require.NoError(t, e.Control(core.Scope{Kind: rules.KindBreaker, Rule: "b"}, ""))
	require.Error(t, e.Control(core.Scope{Kind: rules.KindFlow}, "open"))
	enter(e, "none", 3)
	assert.Equal(t, []string{
		"swap|code",
		"forced|breaker|b|open",
		"state|r|breaker|b|closed|open|open|forced to be open",
		"forced|breaker|closed",
		"forced|breaker|b|open",
		"state|r|breaker|b|open|closed|closed|forced to be closed",
		"refusal|none|flow|none",
	}, told(e, 0))
	events, missed := e.Events(0)
	require.False(t, missed)
	for i, of := range events {
		assert.Equal(t, events[0].ID+uint64(i), of.ID)
		assert.Equal(t, c.Now(), of.At)
	}
	assert.Equal(t, []int{2, 2, 0, 0}, []int{events[0].Rules, events[0].Added, events[0].Changed, events[0].Removed})
	assert.Equal(t, events[4:], eventsAfter(t, e, events[3].ID))
	assert.Empty(t, eventsAfter(t, e, lastEvent(e)))

	c.Advance(time.Second)
	_, changed := e.LastEvent()
	enter(e, "none", 3)
	<-changed
	assert.Len(t, eventsAfter(t, e, events[6].ID), 1, "one of a resource in a second")
}

func eventsAfter(t *testing.T, e *core.Engine, id uint64) []core.Event {
	t.Helper()
	events, missed := e.Events(id)
	require.False(t, missed)
	return events
}

func TestEventsTellOfSourcesAndDocuments(t *testing.T) {
	shelf := newMemory("shelf")
	e, _ := follow(t, shelf)
	shelf.put(core.Change{Complete: true, Revision: 3, Documents: []core.Document{
		doc("good", 2, "flow: [{resource: a, limit: 1}]"), doc("bad", 3, "flow: 1"),
	}})
	shelf.lose(errors.New("it fell"))
	got := told(e, 0)
	require.Len(t, got, 4)
	assert.ElementsMatch(t, []string{"source|shelf|connected", "swap|shelf"}, got[:2])
	assert.True(t, strings.HasPrefix(got[2], "rejection|shelf|bad|rules: bad:1:7: "), got[2])
	assert.Equal(t, "source|shelf|lost|it fell", got[3])
}

func TestEventsTellOfLists(t *testing.T) {
	e, c := newEngine(t)
	from := list.Provider{Source: "files", Document: "a.txt"}
	entries, err := list.Parse(t.Context(), strings.NewReader("10.0.0.1\n"), list.Options{})
	require.NoError(t, err)
	e.Lists().Put("l", from, list.Version{List: entries, At: c.Now()})
	assert.Equal(t, []string{"list|files|a.txt|l|in force"}, told(e, 0))
	last := lastEvent(e)
	assert.Empty(t, told(e, last))
	e.Lists().Judge("l", from, errors.New("no address"), c.Now())
	assert.Equal(t, []string{"list|files|a.txt|l|rejected|no address"}, told(e, last))
	e.Lists().Withdraw("l", from)
	e.Lists().Judge("l", from, nil, 0)
	assert.NotEmpty(t, told(e, lastEvent(e)))
}

func TestTheLatestEventsAreKept(t *testing.T) {
	e := core.New(core.Config{Logger: quiet, Clock: clock.NewVirtual(begin), MaxEvents: 10})
	defer e.Close()
	load := func() uint64 {
		e.Clock().(*clock.Virtual).Advance(time.Second)
		require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{{Resource: "r", Limit: float64(lastEvent(e) % 1000)}}}))
		return lastEvent(e)
	}
	first := load()
	assert.InDelta(t, begin.UnixMicro(), float64(first), 1)
	for range 25 {
		load()
	}
	events, missed := e.Events(0)
	assert.Len(t, events, 10)
	assert.False(t, missed, "whoever asks for all that there are misses nothing")
	assert.Equal(t, first+25, events[9].ID)
	for after, want := range map[uint64]bool{first + 14: true, first + 15: false, first + 25: false, first + 26: true, first + 1e9: true, 1: true} {
		_, missed := e.Events(after)
		assert.Equal(t, want, missed, "after %d", after-first)
	}
	events, _ = e.Events(first + 1e9)
	assert.Len(t, events, 10, "an ID of another process selects all")
}

func TestOnlySomeEventsOfASecondAreKept(t *testing.T) {
	e, c := newEngine(t)
	for i := range 80 {
		require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{{Resource: strings.Repeat("x", 500), Limit: float64(i)}}}))
	}
	require.NoError(t, e.Control(core.Scope{Kind: rules.KindBreaker}, breaker.Open))
	c.Advance(time.Second)
	require.NoError(t, e.Load(rules.Set{}))
	events := eventsAfter(t, e, 0)
	require.Len(t, events, 52)
	assert.EqualValues(t, "forced", events[50].Type, "others are kept")
	assert.Equal(t, uint64(30), events[51].Skipped)
	enter(e, strings.Repeat("y", 2000), 1)
	for _, of := range events {
		assert.LessOrEqual(t, len(of.Resource), 300)
	}
}

func TestEventsAreNotKeptIfNobodyWants(t *testing.T) {
	e := core.New(core.Config{Logger: quiet, MaxEvents: -1})
	defer e.Close()
	require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{{Resource: "r"}}}))
	events, missed := e.Events(0)
	assert.Empty(t, events)
	assert.False(t, missed)
}

func BenchmarkEvent(b *testing.B) {
	e := core.New(core.Config{Logger: quiet, Clock: &free{clock.System(), clock.System().Now()}})
	defer e.Close()
	load(b, e, flow.Rule{Resource: "r"})
	b.ReportAllocs()
	for b.Loop() {
		e.Events(lastEvent(e))
	}
}

func TestEventsTellOfOutagesOfTheFleet(t *testing.T) {
	c := clock.NewVirtual(begin)
	shared := fleetmemory.New(c)
	e := core.New(core.Config{Clock: c, Logger: quiet, Fleet: fleet.Config{Manual: true}})
	defer e.Close()
	require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{{Name: "f", Resource: "r", Limit: 10, Scope: rule.ScopeFleet}}}))
	runFleet(t, e, shared)
	last := lastEvent(e)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		enter(e, "r", 5)
		for _, batch := range sharing.Of(e.Fleet()).Step(c.Now()) {
			c.Advance(time.Second) // longer than the backend may take
			_ = batch.Send(ctx, shared)
			sharing.Of(e.Fleet()).Deliver(c.Now(), batch)
		}
		c.Advance(time.Second)
	}
	var outages []core.Event
	for _, of := range eventsAfter(t, e, last) {
		if of.Type == "fleet" {
			outages = append(outages, of)
		}
	}
	require.Len(t, outages, 1)
	assert.Contains(t, outages[0].Text, "the backend of the fleet does not")
	assert.NotEmpty(t, outages[0].Err)
}

// lastEvent returns the ID of the latest event.
func lastEvent(e *core.Engine) uint64 {
	id, _ := e.LastEvent()
	return id
}
