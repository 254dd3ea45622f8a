package core_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
)

// A rule may let nothing pass for a while, and count in another way before and after that.
func TestCallsPassAgainAfterALimitOfZero(t *testing.T) {
	t.Parallel()
	warming := func(r flow.Rule) flow.Rule {
		r.WarmUp.Period = 2 * time.Second
		return r
	}
	manners := map[string]flow.Rule{
		"sliding window": {},
		"fixed window":   {Algorithm: flow.FixedWindow},
		"throttle":       {Algorithm: flow.Throttle},
		"bucket":         {Algorithm: flow.TokenBucket},
		"large bucket":   {Algorithm: flow.TokenBucket, Burst: 3},
		"overdraft":      {Algorithm: flow.TokenBucket, Overdraft: true},
		"warming window": warming(flow.Rule{}),
		"warming queue":  warming(flow.Rule{Algorithm: flow.Throttle}),
		"warming bucket": warming(flow.Rule{Algorithm: flow.TokenBucket}),
	}
	of := func(manner string, limit float64) flow.Rule {
		r := manners[manner]
		r.Name, r.Resource, r.Limit = "r", "a", limit
		return r
	}
	for before := range manners {
		for at := range manners {
			for after := range manners {
				t.Run(before+", "+at+", "+after, func(t *testing.T) {
					t.Parallel()
					e, c := newEngine(t, of(before, 5))
					enter(e, "a", 1)
					load(t, e, of(at, 0))
					_, err := e.Entry(t.Context(), "a")
					require.Error(t, err)
					c.Advance(time.Second)
					load(t, e, of(after, 5))
					c.Advance(time.Minute)
					guard, err := e.Entry(t.Context(), "a")
					if assert.NoError(t, err) {
						guard.Exit()
					}
				})
			}
		}
	}
}
