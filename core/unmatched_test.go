package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

func unmatched(e *core.Engine) (names []string) {
	for _, key := range e.Status().Unmatched {
		names = append(names, key.Name)
	}
	return names
}

func TestRulesThatNeverMatchedACallAreInTheStatus(t *testing.T) {
	e, _ := newEngine(t)
	require.Equal(t, 2, enter(e, "a", 1)+enter(e, "p:1", 1), "before there are rules")
	load(t, e,
		flow.Rule{Resource: "a", Limit: 1}, flow.Rule{Resource: "blocked", Limit: 0}, flow.Rule{Name: "typo", Resource: "aa", Limit: 1},
		flow.Rule{Name: "p", Match: "p:*", Limit: 1}, flow.Rule{Name: "q", Match: "q:*", Limit: 1, Shared: true},
		flow.Rule{Name: "shadow", Resource: "s", Limit: 0, Shadow: true})
	assert.Equal(t, []string{"a", "blocked", "p", "q", "shadow", "typo"}, unmatched(e))
	e.Explain("q:1")
	for _, name := range []string{"a", "blocked", "p:1", "s"} {
		enter(e, name, 1)
	}
	assert.Equal(t, []string{"q", "typo"}, unmatched(e))
	enter(e, "q:2", 1)
	assert.Equal(t, []string{"typo"}, unmatched(e))

	load(t, e, flow.Rule{Resource: "a", Limit: 7}, flow.Rule{Name: "new", Resource: "a", Limit: 3})
	assert.Equal(t, []string{"new"}, unmatched(e), "the other goes on")
	enter(e, "a", 1)
	assert.Empty(t, e.Status().Unmatched)
}

func TestMatchOfANameThatIsForgottenIsKept(t *testing.T) {
	e, c := newEngine(t, flow.Rule{Name: "p", Match: "p:*", Limit: 1}, flow.Rule{Name: "q", Match: "q:*", Limit: 1})
	enter(e, "p:1", 1)
	c.Advance(5 * time.Minute)
	require.Empty(t, e.Snapshot().Resources)
	assert.Equal(t, []string{"q"}, unmatched(e))
}

func TestMatchOfANameBeyondTheBoundIsKnown(t *testing.T) {
	e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, MaxResources: 1})
	defer e.Close()
	load(t, e, flow.Rule{Name: "p", Match: "p:*", Limit: 1}, flow.Rule{Name: "q", Match: "q:*", Limit: 1})
	enter(e, "other", 1)
	enter(e, "another", 1)
	assert.Equal(t, []string{"p", "q"}, unmatched(e))
	enter(e, "p:1", 1)
	assert.Equal(t, []string{"q"}, unmatched(e))
}

func TestStatusNamesTheFirstHundredUnmatchedRules(t *testing.T) {
	e, _ := newEngine(t)
	var many []flow.Rule
	for i := range 250 {
		many = append(many, flow.Rule{Resource: fmt.Sprintf("r%03d", i), Limit: 1})
	}
	load(t, e, many...)
	status := e.Status()
	assert.Equal(t, 150, status.MoreUnmatched)
	require.Len(t, status.Unmatched, 100)
	assert.Equal(t, "r099", status.Unmatched[99].Name)
}

func TestRuleThatCountsWhatNobodyCallsIsToldOf(t *testing.T) {
	e, _ := newEngine(t)
	require.NoError(t, e.Follow(t.Context(), onceSource(`flow: [{name: f, resource: read, limit: 5, related: write}]`)))
	require.NoError(t, e.Ready(t.Context()))
	missing := func() []core.UnmatchedRule { return e.Status().Sources[0].Unmatched }
	require.Len(t, missing(), 1)
	assert.Equal(t, core.MissingResource, missing()[0].Missing)
	enter(e, "read", 1)
	require.Len(t, missing(), 1)
	assert.Equal(t, core.MissingRelated, missing()[0].Missing)
	assert.Equal(t, "write", missing()[0].Related)
	enter(e, "write", 1)
	assert.Empty(t, missing())
}

func TestExceptionsThatNobodyCallsAreToldOf(t *testing.T) {
	e, c := newEngine(t)
	enter(e, "GET:/live", 1)
	require.NoError(t, e.Follow(t.Context(), onceSource(
		`flow: [{name: f, match: "GET:/*", limit: 500, except: ["GET:/live", "GET:/helth", "GET:/admin/*"]}]`)))
	require.NoError(t, e.Ready(t.Context()))
	missing := func() []core.UnmatchedRule { return e.Status().Sources[0].Unmatched }
	require.Len(t, missing(), 1)
	assert.Equal(t, core.MissingResource, missing()[0].Missing, "what it is for comes first")
	enter(e, "GET:/orders", 1)
	require.Len(t, missing(), 1)
	assert.Equal(t, core.MissingExcept, missing()[0].Missing)
	assert.Equal(t, []string{"GET:/helth", "GET:/admin/*"}, missing()[0].Except)
	enter(e, "GET:/admin/users", 1)
	c.Advance(5 * time.Minute)
	enter(e, "GET:/orders", 1)
	assert.Equal(t, []string{"GET:/helth"}, missing()[0].Except)
	enter(e, "GET:/helth", 1)
	assert.Empty(t, missing())
}

func TestSourceIsToldOfListsThatRulesInForceMiss(t *testing.T) {
	e, _ := newEngine(t)
	var status core.SourceStatus
	require.NoError(t, e.Follow(t.Context(), toldSource{onceSource(`access:
- {name: deny, match: "*", list: bad, listAction: deny}
- {name: shadow, match: "*", list: worse, listAction: deny, shadow: true}
`), &status}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	require.Error(t, e.Ready(ctx), "the list is missing")
	require.Eventually(t, func() bool { return e.Status().Rules == 2 }, time.Minute, time.Millisecond)
	e.Close() // the source has returned
	assert.Equal(t, []core.MissingList{{Name: "bad", Rules: []string{`access "deny"`}}}, status.MissingLists)
}

// toldSource notes its status after it has delivered its document.
type toldSource struct {
	onceSource
	status *core.SourceStatus
}

func (s toldSource) Run(ctx context.Context, sink core.Sink) error {
	sink.Apply(core.Change{Complete: true, Documents: []core.Document{doc("d", 1, string(s.onceSource))}})
	*s.status = sink.Status()
	<-ctx.Done()
	return ctx.Err()
}
