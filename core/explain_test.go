package core_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

func TestExplainTellsTheRulesOfACall(t *testing.T) {
	e, _ := newEngine(t,
		flow.Rule{Name: "shadow", Match: "orders:*", Limit: 1, Shadow: true},
		flow.Rule{Name: "window", Resource: "orders:create", Limit: 10},
		flow.Rule{Name: "queue", Match: "~create", Limit: 5, Algorithm: flow.Throttle, MaxWait: time.Second},
		flow.Rule{Name: "mobile", Resource: "orders:create", Limit: 3, Origin: "mobile"},
	)
	explain := func(resource string, opts ...core.Option) (names []string) {
		for _, a := range e.Explain(resource, opts...) {
			names = append(names, a.Name)
		}
		return names
	}
	assert.Equal(t, []string{"queue", "window", "shadow"}, explain("orders:create"))
	assert.Equal(t, []string{"queue", "mobile", "window", "shadow"}, explain("orders:create", core.Origin("mobile")))
	assert.Equal(t, []string{"shadow"}, explain("orders:list"))
	assert.Empty(t, explain("users"))

	assert.Equal(t, 1, enter(e, "orders:create", 1))
	applied := e.Explain("orders:create")
	assert.EqualValues(t, 9, applied[1].Quota.Remaining)
	assert.InDelta(t, 10, applied[1].Quota.Effective, 0)
}

func TestExplainTellsWhenACallPassesWhateverTheRuleLooksAt(t *testing.T) {
	e, c := newEngine(t,
		flow.Rule{Name: "window", Resource: "orders", Limit: 2, Algorithm: flow.FixedWindow, Window: time.Minute},
		flow.Rule{Name: "none", Resource: "gone", Limit: 0},
	)
	assert.Zero(t, e.Explain("orders")[0].RetryAfter)
	assert.Equal(t, 2, enter(e, "orders", 2))
	left := e.Explain("orders")[0].RetryAfter
	assert.Positive(t, left)
	c.Advance(left)
	assert.Zero(t, e.Explain("orders")[0].RetryAfter)
	assert.Equal(t, rule.Never, e.Explain("gone")[0].RetryAfter)
}

func TestExplainingRemembersNoNames(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Match: "*", Limit: 1})
	for range 3 {
		require.Len(t, e.Explain("a name"), 1)
		require.Len(t, e.Quotas("another"), 1)
	}
	assert.Empty(t, e.Snapshot().Resources)
}

func TestExplainShowsOnlyOriginsThatRulesName(t *testing.T) {
	e, _ := newEngine(t,
		flow.Rule{Name: "mobile", Resource: "orders:create", Limit: 3, Origin: "mobile"},
		flow.Rule{Name: "others", Resource: "orders:create", Limit: 1, Origin: rule.OtherOrigins},
		flow.Rule{Name: "shadow", Match: "orders:*", Limit: 3, Origin: "web", Shadow: true},
	)
	for resource, want := range map[string][]string{
		"orders:create": {"mobile", "web", "", "", ""},
		"orders:list":   {"", "web", "", "", ""},
		"users":         {"", "", "", "", ""},
	} {
		var got []string
		for _, origin := range []string{"mobile", "web", "somebody", rule.OtherOrigins, ""} {
			got = append(got, e.NamedOrigin(resource, origin))
		}
		assert.Equal(t, want, got, resource)
	}
	assert.Empty(t, e.Snapshot().Resources[1:], "no names are remembered but those of rules")
	e.Close()
	assert.Empty(t, e.NamedOrigin("orders:create", "mobile"))
}
