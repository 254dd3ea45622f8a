package flow_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
)

func TestAlgorithmDecidesTheLimiter(t *testing.T) {
	t.Parallel()
	for want, rules := range map[flow.LimiterKind][]flow.Rule{
		flow.WindowLimiter:   {{}, {Algorithm: flow.SlidingWindow}, {Algorithm: flow.FixedWindow}},
		flow.ThrottleLimiter: {{Algorithm: flow.Throttle}, {Algorithm: flow.Throttle, WarmUp: flow.WarmUp{Period: 1}}},
		flow.BucketLimiter:   {{Algorithm: flow.TokenBucket}, {Algorithm: flow.TokenBucket, WarmUp: flow.WarmUp{Period: 1}}},
	} {
		for _, rule := range rules {
			assert.Equal(t, want, rule.LimiterKind(), "%+v", rule)
			assert.Equal(t, want, flow.Kind().WithDefaults(rule).LimiterKind(), "%+v", rule)
		}
	}
}
