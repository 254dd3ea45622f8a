package flow_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
)

func TestLimiterOfARule(t *testing.T) {
	t.Parallel()
	for want, rules := range map[flow.Limiter][]flow.Rule{
		flow.WindowLimiter:   {{}, {Algorithm: flow.SlidingWindow}, {Algorithm: flow.FixedWindow}},
		flow.ThrottleLimiter: {{Algorithm: flow.Throttle}, {Algorithm: flow.Throttle, WarmUp: flow.WarmUp{Period: 1}}},
		flow.BucketLimiter:   {{Algorithm: flow.TokenBucket}, {Algorithm: flow.TokenBucket, WarmUp: flow.WarmUp{Period: 1}}},
	} {
		for _, rule := range rules {
			assert.Equal(t, want, rule.Limiter(), "%+v", rule)
			assert.Equal(t, want, rule.WithDefaults().Limiter(), "%+v", rule)
		}
	}
}
