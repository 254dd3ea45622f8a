package core_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestExceptedResourcesAreNotUnderTheRule(t *testing.T) {
	for name, shared := range map[string]bool{"each": false, "shared": true} {
		t.Run(name, func(t *testing.T) {
			e, c := newEngine(t)
			early := []string{"api:a", "api:health"} // have resources before the rule comes
			for _, resource := range early {
				require.Equal(t, 1, enter(e, resource, 1))
			}
			r := flow.Rule{Match: "api:*", Shared: shared, Limit: 2, Except: rule.StringsOf("api:health", "api:static:*", "~^api:v[0-9]$")}
			load(t, e, r)
			for _, resource := range []string{"api:health", "api:static:x", "api:static:", "api:v1"} {
				assert.Equal(t, 10, enter(e, resource, 10), resource)
				assert.Empty(t, e.Explain(resource), resource)
			}
			for _, resource := range []string{"api:a", "api:healthy", "api:static", "api:v10"} {
				assert.Equal(t, 2, enter(e, resource, 10), resource)
				assert.Len(t, e.Explain(resource), 1, resource)
				c.Advance(2 * time.Second)
			}
		})
	}
}

func TestExceptionsChangeWithTheRule(t *testing.T) {
	e, _ := newEngine(t)
	r := flow.Rule{Match: "api:*", Limit: 3}
	load(t, e, r)
	require.Equal(t, 2, enter(e, "api:a", 2))
	require.Equal(t, 3, enter(e, "api:health", 10))

	r.Except = rule.StringsOf("api:health")
	load(t, e, r)
	assert.Equal(t, 10, enter(e, "api:health", 10))
	assert.Equal(t, 1, enter(e, "api:a", 10), "it goes on from what it has counted")

	r.Except = rule.StringsOf("api:a")
	load(t, e, r)
	assert.Equal(t, 10, enter(e, "api:a", 10))
	assert.Equal(t, 3, enter(e, "api:health", 10), "it begins anew")
}

func TestExceptedNamesBeyondTheBoundAreNotUnderTheRule(t *testing.T) {
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: slog.New(slog.DiscardHandler), MaxResources: 1})
	defer e.Close()
	require.NoError(t, e.Load(rules.Set{Isolation: []isolation.Rule{{Match: "*", Limit: 0, Except: rule.StringsOf("free*")}}}))
	for i := range 20 {
		assert.Equal(t, 1, enter(e, fmt.Sprint("free", i), 1))
		assert.Zero(t, enter(e, fmt.Sprint("other", i), 1))
	}
}

func TestExceptedResourceDoesNotMakeARuleMatched(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Match: "api:*", Limit: 2, Except: rule.StringsOf("api:health")})
	require.Equal(t, 5, enter(e, "api:health", 5))
	assert.Len(t, e.Status().Unmatched, 1)
	guard, err := e.Entry(context.Background(), "api:a")
	require.NoError(t, err)
	guard.Exit()
	assert.Empty(t, e.Status().Unmatched)
}
