package simulate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// Reports wait for a rule of their own, up to sixty at once. The service is all but idle.
func TestCallsThatWaitForAnotherRuleAreNoOverload(t *testing.T) {
	t.Parallel()
	const length = time.Minute
	for name, set := range map[string]rules.Set{
		"throttle":  {Flow: []flow.Rule{{Resource: "reports", Limit: 1, Algorithm: flow.Throttle, MaxWait: length}}},
		"isolation": {Isolation: []isolation.Rule{{Resource: "reports", Limit: 1, MaxWait: length}}},
	} {
		set.Adaptive = []adaptive.Rule{{Name: "shed"}}
		load := simulate.Load{Streams: []simulate.Stream{
			{Resource: "reports", Rate: 2, Until: length, ServiceTime: time.Second, Inbound: true},
			{Resource: "pages", Rate: 100, Until: length, ServiceTime: 10 * ms, Inbound: true},
		}}
		most := 0
		for _, s := range run(t, set, load, length).Seconds {
			if s.Resource == "pages" {
				assert.Zero(t, s.Blocked, "%s: second %v", name, s.Second)
				most = max(most, s.InFlight)
			}
		}
		assert.Positive(t, most, name)
	}
}
