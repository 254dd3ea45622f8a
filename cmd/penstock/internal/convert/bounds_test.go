package convert

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
)

// Of two rules the first is at the bound and sound, the second is beyond it.
func TestBoundsAreThoseOfTheKinds(t *testing.T) {
	t.Parallel()
	places := func(limit int) rule.Rule { return isolation.Kind().Of(isolation.Rule{Resource: "r", Limit: limit}) }
	values := func(concurrency, values int) rule.Rule {
		return hotparam.Kind().Of(hotparam.Rule{
			Resource: "r", Param: rule.StringsOf("user"), Concurrency: concurrency, MaxValues: values,
		})
	}
	circuit := func(threshold float64, window time.Duration) rule.Rule {
		return breaker.Kind().Of(breaker.Rule{Resource: "r", Strategy: breaker.ErrorRatio, Threshold: threshold, Window: window})
	}
	for _, pair := range [][2]rule.Rule{
		{places(maxPlaces), places(maxPlaces + 1)},
		{values(maxConcurrency, 0), values(maxConcurrency+1, 0)},
		{values(1, maxValues), values(1, maxValues+1)},
		{circuit(minRatio, 0), circuit(minRatio/2, 0)},
		{circuit(.5, time.Second+breakerBuckets), circuit(.5, time.Second+breakerBuckets/2)},
	} {
		assert.Empty(t, pair[0].WithDefaults().Faults(), "%+v", pair[0].Value())
		assert.NotEmpty(t, pair[1].WithDefaults().Faults(), "%+v", pair[1].Value())
	}
	warm := flow.Kind().WithDefaults(flow.Rule{Resource: "r", Limit: 10, WarmUp: flow.WarmUp{Period: time.Minute}})
	assert.InDelta(t, usualColdFactor, warm.WarmUp.ColdFactor, 0)
	held := hotparam.Kind().WithDefaults(hotparam.Rule{Resource: "r", Param: rule.StringsOf("user"), Concurrency: 1})
	assert.Equal(t, usualValues, held.MaxValues)
}
