package core_test

import (
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
	for _, key := range e.Status().Unmatched.Rules {
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
	assert.Equal(t, core.Unmatched{}, e.Status().Unmatched)
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
	u := e.Status().Unmatched
	assert.Equal(t, 250, u.Count)
	require.Len(t, u.Rules, 100)
	assert.Equal(t, "r099", u.Rules[99].Name)
}
