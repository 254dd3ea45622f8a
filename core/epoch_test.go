package core_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// On a clock that stands at the Unix epoch rules do what they do at any other
// time.
func TestRulesHoldFromTheEpochOn(t *testing.T) {
	for name, rule := range map[string]flow.Rule{
		"sliding window":  {Limit: 10},
		"strict window":   {Limit: 10, Strict: true},
		"fixed window":    {Limit: 10, Algorithm: flow.FixedWindow},
		"token bucket":    {Limit: 10, Algorithm: flow.TokenBucket, Burst: 5},
		"throttle":        {Limit: 10, Algorithm: flow.Throttle},
		"warm-up":         {Limit: 10, WarmUp: flow.WarmUp{Period: 5 * time.Second}},
		"warming bucket":  {Limit: 10, Algorithm: flow.TokenBucket, WarmUp: flow.WarmUp{Period: 5 * time.Second}},
		"cold throttle":   {Limit: 10, Algorithm: flow.Throttle, WarmUp: flow.WarmUp{Period: 5 * time.Second}},
		"several seconds": {Limit: 10, Window: 3 * time.Second},
	} {
		rule.Resource = "r"
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, passesFrom(t, begin.Truncate(time.Hour), rule), passesFrom(t, time.Time{}, rule))
		})
	}
}

// passesFrom returns how many of ten calls pass in each tenth of a second.
func passesFrom(t *testing.T, start time.Time, rule flow.Rule) (passed []int) {
	c := clock.NewVirtual(start)
	e := core.New(core.Config{Clock: c, Logger: quiet})
	defer e.Close()
	load(t, e, rule)
	for range 100 {
		passed = append(passed, enter(e, "r", 10))
		c.Advance(100 * time.Millisecond)
	}
	require.NotZero(t, e.Resource("r").Snapshot().Passed)
	require.NotZero(t, e.Resource("r").Snapshot().Blocked)
	return passed
}
