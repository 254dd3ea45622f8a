package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// memory is a source that delivers what the test puts into it.
type memory struct {
	name  string
	steps chan func(core.Sink)
	end   error // what Run returns when it is told to give up
}

func newMemory(name string) *memory { return &memory{name: name, steps: make(chan func(core.Sink))} }

func (m *memory) Name() string { return m.name }

func (m *memory) Run(ctx context.Context, sink core.Sink) error {
	for {
		select {
		case step := <-m.steps:
			if step == nil {
				return m.end
			}
			step(sink)
			m.steps <- nil // done
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// put has the source deliver a change and returns when it is applied.
func (m *memory) put(change core.Change) {
	m.steps <- func(s core.Sink) { s.Apply(change) }
	<-m.steps
}

func (m *memory) lose(err error) {
	m.steps <- func(s core.Sink) { s.Disconnected(err) }
	<-m.steps
}

// doc is a document with the given limits, all of one resource per name.
func doc(name string, revision int64, text string) core.Document {
	return core.Document{Name: name, Revision: revision, Data: []byte(text)}
}

func complete(docs ...core.Document) core.Change {
	return core.Change{Complete: true, Documents: docs, Revision: 1}
}

// follow returns an engine that follows a source, and what was rejected.
func follow(t *testing.T, sources ...*memory) (*core.Engine, *[]core.Rejection) {
	t.Helper()
	var rejected []core.Rejection
	var e *core.Engine
	e = core.New(core.Config{
		Clock: clock.NewVirtual(begin), Logger: quiet,
		Observer: core.Observer{
			Rejected: func(r core.Rejection) {
				e.Status() // an observer may ask the engine
				rejected = append(rejected, r)
			},
			Swapped: func(core.Swap) { e.Status() },
		},
	})
	t.Cleanup(e.Close)
	for _, s := range sources {
		require.NoError(t, e.Follow(t.Context(), s))
	}
	return e, &rejected
}

// active returns the names of the flow rules in force with their limits.
func active(e *core.Engine) map[string]float64 {
	limits := map[string]float64{}
	for _, r := range e.Snapshot().Resources {
		for _, f := range r.Rules {
			limits[f.Name] = f.Rule.Value().(flow.Rule).Limit
		}
	}
	return limits
}

func TestDocumentsComeAndGo(t *testing.T) {
	source := newMemory("memory")
	e, rejected := follow(t, source)

	source.put(complete(
		doc("a", 1, "flow: [{resource: a, limit: 1}, {resource: b, limit: 2}]"),
		doc("c", 1, "flow: [{resource: c, limit: 3}]")))
	assert.Equal(t, map[string]float64{"a": 1, "b": 2, "c": 3}, active(e))

	source.put(core.Change{Documents: []core.Document{doc("a", 2, "flow: [{resource: a, limit: 10}]")}, Revision: 2})
	assert.Equal(t, map[string]float64{"a": 10, "c": 3}, active(e))

	source.put(core.Change{Removed: []string{"c", "unknown"}, Revision: 3})
	assert.Equal(t, map[string]float64{"a": 10}, active(e))

	require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{{Resource: "code", Limit: 5}}}))
	assert.Equal(t, map[string]float64{"a": 10, "code": 5}, active(e))

	source.put(complete(doc("d", 4, "flow: [{resource: d, limit: 4}]")))
	assert.Equal(t, map[string]float64{"d": 4, "code": 5}, active(e))
	assert.Empty(t, *rejected)
}

func TestABadDocumentKeepsItsLastGoodVersionAndDelaysNoOther(t *testing.T) {
	source := newMemory("memory")
	e, rejected := follow(t, source)
	source.put(complete(
		doc("a", 1, "flow: [{resource: a, limit: 1}]"),
		doc("b", 1, "flow: [{resource: b, limit: 1}]"),
		doc("c", 1, "flow: [{resource: c, limit: 1}]")))

	bad := core.Change{Revision: 2, Documents: []core.Document{
		doc("a", 2, "flow: [{resource: a, limit: -1}]"),
		doc("b", 2, ""), // a file that is being rewritten
		doc("c", 2, "flow: [{resource: c, limit: 2}]"),
		{Name: "d", Err: errors.New("not readable")},
	}}
	source.put(bad)
	source.put(bad) // the same again is not reported again
	assert.Equal(t, map[string]float64{"a": 1, "b": 1, "c": 2}, active(e))

	require.Len(t, *rejected, 3)
	var problems rules.Problems
	require.ErrorAs(t, (*rejected)[0].Err, &problems)
	assert.Equal(t, "a", problems[0].Document)
	assert.Equal(t, 1, problems[0].Line)
	assert.EqualValues(t, 3, e.Snapshot().Rejected)

	docs := e.Status().Sources[0].Documents
	require.Len(t, docs, 4)
	assert.EqualValues(t, 1, docs[0].Revision)
	assert.EqualValues(t, 2, docs[0].RejectedRevision)
	require.Error(t, docs[0].Rejected)
	require.NoError(t, docs[2].Rejected)
	assert.EqualValues(t, 2, docs[2].Revision)

	source.put(core.Change{Documents: []core.Document{doc("a", 3, "flow: [{resource: a, limit: 3}]")}})
	assert.Equal(t, map[string]float64{"a": 3, "b": 1, "c": 2}, active(e))
	assert.NoError(t, e.Status().Sources[0].Documents[0].Rejected)
}

func TestANameStandsForOneRule(t *testing.T) {
	first, second := newMemory("first"), newMemory("second")
	e, rejected := follow(t, first, second)
	require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{{Resource: "code", Limit: 1}}}))

	second.put(complete(doc("b", 1, "flow: [{resource: x, limit: 2}]")))
	first.put(complete(
		doc("a", 1, "flow: [{resource: x, limit: 1}, {resource: y, limit: 1}]"),
		doc("code", 1, "flow: [{resource: code, limit: 7}]")))
	assert.Equal(t, map[string]float64{"code": 1, "x": 1, "y": 1}, active(e), "the code comes first, then the first source")
	require.Len(t, *rejected, 2)
	assert.EqualError(t, (*rejected)[0].Err, `rules: code:1:8: flow rule "code": name is taken by flow[0], made in code, `+
		`which comes before documents: this one, of source "first", waits until that is gone: `+
		`give one of them another (the default is the resource)`)
	assert.EqualError(t, (*rejected)[1].Err, `rules: b:1:8: flow rule "x": name is taken by the rule at a:1:8 `+
		`of source "first", which comes first: this one, of source "second", waits until that is gone: `+
		`give one of them another (the default is the resource)`)

	require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{{Resource: "x", Limit: 5}}}))
	assert.Equal(t, map[string]float64{"code": 7, "x": 5, "y": 1}, active(e))
	require.Len(t, *rejected, 3)
	first.put(core.Change{Removed: []string{"a"}})
	assert.Equal(t, map[string]float64{"code": 7, "x": 5}, active(e))
	require.NoError(t, e.Load(rules.Set{}))
	assert.Equal(t, map[string]float64{"code": 7, "x": 2}, active(e), "the next takes over")
	require.Len(t, *rejected, 3)
	for _, source := range e.Status().Sources {
		for _, d := range source.Documents {
			assert.NoError(t, d.Rejected)
		}
	}
}

func TestDocumentsMaySwapNames(t *testing.T) {
	source := newMemory("memory")
	e, rejected := follow(t, source)
	source.put(complete(
		doc("a", 1, "flow: [{resource: x, limit: 1}]"),
		doc("b", 1, "flow: [{resource: y, limit: 1}]")))
	source.put(core.Change{Documents: []core.Document{
		doc("a", 2, "flow: [{resource: y, limit: 2}]"),
		doc("b", 2, "flow: [{resource: x, limit: 2}]"),
	}})
	assert.Equal(t, map[string]float64{"x": 2, "y": 2}, active(e))
	assert.Empty(t, *rejected)
}

func TestLosingASourceKeepsItsRules(t *testing.T) {
	source := newMemory("memory")
	e, _ := follow(t, source)
	source.put(complete(doc("a", 1, "flow: [{resource: a, limit: 1}]")))
	require.True(t, e.Status().Sources[0].Connected)

	gone := errors.New("gone")
	source.lose(gone)
	assert.Equal(t, map[string]float64{"a": 1}, active(e))
	status := e.Status().Sources[0]
	assert.False(t, status.Connected)
	require.ErrorIs(t, status.Err, gone)

	source.put(complete(doc("a", 1, "flow: [{resource: a, limit: 1}]")))
	assert.True(t, e.Status().Sources[0].Connected)
}

func TestASourceThatGivesUpKeepsItsRulesAndCanBeFollowedAgain(t *testing.T) {
	source := newMemory("memory")
	source.end = errors.New("pointless")
	e, _ := follow(t, source)
	require.Error(t, e.Follow(t.Context(), source), "a source is followed once")
	source.put(complete(doc("a", 1, "flow: [{resource: a, limit: 1}]")))

	source.steps <- nil
	require.Eventually(t, func() bool { return e.Status().Sources[0].Err != nil }, 2*time.Minute, time.Millisecond)
	require.ErrorIs(t, e.Status().Sources[0].Err, source.end)
	assert.Equal(t, map[string]float64{"a": 1}, active(e))

	require.NoError(t, e.Follow(t.Context(), source))
	source.put(complete(doc("b", 1, "flow: [{resource: b, limit: 1}]")))
	assert.Equal(t, map[string]float64{"b": 1}, active(e))
	assert.Len(t, e.Status().Sources, 1)
}

func TestStatusTellsUntilWhenASourceIsKnown(t *testing.T) {
	source := newMemory("memory")
	now := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: now, Logger: quiet})
	defer e.Close()
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, e.Follow(ctx, source))
	known := func() clock.Instant { return e.Status().Sources[0].KnownUntil(now.Now()) }
	assert.Zero(t, known(), "it was never read")

	now.Advance(1)
	copied := complete()
	copied.CopiedAt = 7
	source.put(copied)
	assert.EqualValues(t, 7, known())
	source.put(complete())
	now.Advance(1)
	assert.Equal(t, now.Now(), known())

	lost := now.Now()
	source.lose(errors.New("gone"))
	now.Advance(1)
	assert.Equal(t, lost, known())

	source.put(complete())
	now.Advance(1)
	ended := now.Now()
	cancel()
	require.Eventually(t, func() bool { return !e.Status().Sources[0].Connected }, 2*time.Minute, time.Millisecond)
	now.Advance(1)
	assert.Equal(t, ended, known(), "it is not followed any longer")
}

func TestReadyWaitsForEverySource(t *testing.T) {
	first, second := newMemory("first"), newMemory("second")
	e, _ := follow(t, first, second)
	ready := make(chan error)
	go func() { ready <- e.Ready(t.Context()) }()

	first.put(complete())
	second.lose(errors.New("no route"))
	expired, cancel := context.WithCancel(t.Context())
	cancel()
	err := e.Ready(expired)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, `source "second": no route`)

	second.put(complete())
	require.NoError(t, <-ready)
	require.NoError(t, e.Ready(t.Context()))
}

func TestCloseStopsFollowing(t *testing.T) {
	source := newMemory("memory")
	e, _ := follow(t, source)
	ready := make(chan error)
	go func() { ready <- e.Ready(t.Context()) }()
	e.Close()
	require.ErrorIs(t, <-ready, core.ErrClosed)
}
