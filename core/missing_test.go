package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// A call without the attribute may not be made: that is no rate limit, whichever other rules there
// are. A call that another rule refuses keeps that rule's reason.
func TestCallsWithoutTheAttributeAreDenied(t *testing.T) {
	for name, limit := range map[string]hotparam.Rule{
		"token bucket": {Limit: 1},
		"throttle":     {Limit: 1, Algorithm: hotparam.Throttle, MaxWait: time.Second},
		"concurrency":  {Concurrency: 1},
		"composite":    {Limit: 1, Param: rule.StringsOf("user", "tenant")},
	} {
		for _, missing := range []rule.Missing{rule.MissingBlock, rule.MissingUnauthenticated} {
			for _, flows := range [][]flow.Rule{nil, {{Resource: "r", Limit: 100}}, {{Resource: "r", Limit: 100, Algorithm: flow.Throttle}}} {
				t.Run(name+" "+string(missing), func(t *testing.T) {
					e, _ := newEngine(t)
					limit.Name, limit.Resource, limit.Missing = "per-user", "r", missing
					if limit.Param.Len() == 0 {
						limit.Param = rule.StringsOf("user")
					}
					require.NoError(t, e.Load(rules.Set{HotParam: []hotparam.Rule{limit}, Flow: flows}))
					var block *core.BlockError
					for range 2 {
						_, err := e.Entry(context.Background(), "r", core.String("other", "x"))
						require.ErrorAs(t, err, &block)
						assert.Equal(t, rule.Denied, block.Reason)
						assert.Zero(t, block.RetryAfter)
						want := rule.Answer{}
						if missing == rule.MissingUnauthenticated {
							want = rule.Answer{HTTP: 401, GRPC: "UNAUTHENTICATED"}
						}
						assert.Equal(t, want, block.Answer)
					}
				})
			}
		}
	}
	t.Run("another rule refuses first", func(t *testing.T) {
		e, _ := newEngine(t)
		require.NoError(t, e.Load(rules.Set{HotParam: []hotparam.Rule{
			{Name: "a", Resource: "r", Param: rule.StringsOf("user"), Limit: 0},
			{Name: "b", Resource: "r", Param: rule.StringsOf("tenant"), Limit: 1, Missing: rule.MissingBlock},
		}}))
		_, err := e.Entry(context.Background(), "r", core.String("user", "ann"))
		var block *core.BlockError
		require.ErrorAs(t, err, &block)
		assert.Equal(t, "a", block.Rule)
		assert.Equal(t, rule.RateLimited, block.Reason)
		assert.Equal(t, rule.Never, block.RetryAfter)
	})
}
