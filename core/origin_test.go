package core_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

func TestRulesForTheCallsOfOneOrigin(t *testing.T) {
	e, _ := newEngine(t,
		flow.Rule{Name: "all", Resource: "r", Limit: 10},
		flow.Rule{Name: "mobile", Resource: "r", Limit: 2, Origin: "mobile"},
		flow.Rule{Name: "other", Resource: "r", Limit: 3, Origin: rule.OtherOrigins},
	)
	assert.Equal(t, 2, enter(e, "r", 5, core.Origin("mobile")))
	assert.Equal(t, 2, enter(e, "r", 2, core.Origin("web")))
	assert.Equal(t, 1, enter(e, "r", 5), "a call without origin is one of the others")
	assert.Equal(t, 0, enter(e, "r", 5, core.Origin("batch")), "the others share the effective limit")
}

func TestTheLimitForAllHoldsForNamedOriginsToo(t *testing.T) {
	e, _ := newEngine(t,
		flow.Rule{Name: "all", Resource: "r", Limit: 3},
		flow.Rule{Name: "mobile", Resource: "r", Limit: 2, Origin: "mobile"},
	)
	assert.Equal(t, 2, enter(e, "r", 2))
	assert.Equal(t, 1, enter(e, "r", 5, core.Origin("mobile")))
}

func TestAnOriginIsNamedPerResource(t *testing.T) {
	e, _ := newEngine(t,
		flow.Rule{Name: "a mobile", Resource: "a", Limit: 5, Origin: "mobile"},
		flow.Rule{Name: "b other", Resource: "b", Limit: 1, Origin: rule.OtherOrigins},
		flow.Rule{Name: "c mobile", Match: "c*", Limit: 4, Origin: "mobile"},
		flow.Rule{Name: "c other", Resource: "c1", Limit: 1, Origin: rule.OtherOrigins},
	)
	assert.Equal(t, 1, enter(e, "b", 5, core.Origin("mobile")), "no rule on b names it")
	assert.Equal(t, 4, enter(e, "c1", 5, core.Origin("mobile")), "a pattern on c1 names it")
	assert.Equal(t, 1, enter(e, "c1", 5))
}

func TestQueuesAreForOriginsToo(t *testing.T) {
	e, _ := newEngine(t,
		flow.Rule{Name: "slow", Resource: "r", Limit: 1, Algorithm: flow.Throttle, Origin: "batch"},
		flow.Rule{Name: "bucket", Resource: "r", Limit: 2, Burst: 4, Algorithm: flow.TokenBucket, Origin: rule.OtherOrigins},
	)
	assert.Equal(t, 1, enter(e, "r", 5, core.Origin("batch")))
	assert.Equal(t, 4, enter(e, "r", 5, core.Origin("web")))
}

func TestLimitsOfTheOriginOfTheCallAreReturned(t *testing.T) {
	e, _ := newEngine(t,
		flow.Rule{Name: "all", Resource: "r", Limit: 10},
		flow.Rule{Name: "mobile", Resource: "r", Limit: 2, Origin: "mobile"},
		flow.Rule{Name: "shadow", Resource: "r", Limit: 1, Shadow: true},
	)
	of := func(opts ...core.Option) (names []string) {
		for _, c := range e.Quotas("r", opts...) {
			names = append(names, c.Name)
		}
		return names
	}
	assert.Equal(t, []string{"all"}, of())
	assert.Equal(t, []string{"mobile", "all"}, of(core.Origin("mobile")))
}
