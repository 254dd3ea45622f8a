package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/rule"
)

// refusedBy makes a call that is to be refused and returns why.
func refusedBy(t *testing.T, e *core.Engine, resource string, opts ...core.Option) *core.BlockError {
	t.Helper()
	_, err := e.Entry(context.Background(), resource, opts...)
	var block *core.BlockError
	require.ErrorAs(t, err, &block)
	return block
}

func TestRetryAfterIsThatOfTheRuleThatTakesLongest(t *testing.T) {
	perSecond := flow.Rule{Name: "second", Resource: "r", Limit: 10, Buckets: 1}
	perHour := flow.Rule{Name: "yearly", Resource: "r", Limit: 10, Window: time.Hour, Buckets: 1}
	slow := throttle("r", 1, 0)
	slow.Name, slow.Window = "slow", time.Minute
	bucket := flow.Rule{Name: "bucket", Resource: "r", Limit: 1, Window: 10 * time.Minute, Burst: 10, Algorithm: flow.TokenBucket}
	one := perSecond
	one.Limit = 1
	const left = 3400 * time.Second // of the hour in which the clock begins
	tests := map[string]struct {
		rules  []flow.Rule
		passes int
		by     string
		want   time.Duration
	}{
		"the only one":                   {[]flow.Rule{perSecond}, 10, "second", time.Second},
		"the second window":              {[]flow.Rule{perSecond, perHour}, 10, "second", left},
		"the first window":               {[]flow.Rule{perHour, perSecond}, 10, "second", left},
		"one that has room does not":     {[]flow.Rule{one, perHour}, 1, "second", time.Second},
		"a queue before a window":        {[]flow.Rule{slow, one}, 1, "slow", time.Minute},
		"a window behind a queue":        {[]flow.Rule{{Name: "q", Resource: "r", Limit: 1, Algorithm: flow.Throttle}, {Name: "hour", Resource: "r", Limit: 1, Window: time.Hour, Buckets: 1}}, 1, "q", left},
		"a token bucket and a window":    {[]flow.Rule{bucket, {Name: "w", Resource: "r", Limit: 10, Buckets: 1}}, 10, "bucket", 10 * time.Minute},
		"a queue behind a queue":         {[]flow.Rule{throttle("r", 1, 0), slow}, 1, "r", time.Minute},
		"a rule that blocks all":         {[]flow.Rule{one, {Name: "closed", Resource: "r"}}, 0, "closed", rule.Never},
		"an hour beside one that blocks": {[]flow.Rule{{Name: "closed", Resource: "r"}, perHour}, 0, "closed", rule.Never},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, _ := newEngine(t, test.rules...)
			require.Equal(t, test.passes, enter(e, "r", test.passes))
			block := refusedBy(t, e, "r")
			assert.Equal(t, test.by, block.Rule)
			assert.Equal(t, test.want, block.RetryAfter)
			if test.want == rule.Never {
				return
			}
			assert.Same(t, block, refusedBy(t, e, "r"), "the error is shared")
		})
	}
}

// A caller that waits as long as it is told passes.
func TestACallPassesAfterItsRetryAfter(t *testing.T) {
	e, c := newEngine(t,
		flow.Rule{Name: "second", Resource: "r", Limit: 3},
		flow.Rule{Name: "minute", Resource: "r", Limit: 10, Window: time.Minute},
		flow.Rule{Name: "hour", Match: "*", Shared: true, Limit: 40, Window: time.Hour, Algorithm: flow.FixedWindow},
		flow.Rule{Name: "bucket", Resource: "r", Limit: 5, Burst: 5, Algorithm: flow.TokenBucket},
		flow.Rule{Name: "queue", Resource: "r", Limit: 50, Algorithm: flow.Throttle},
	)
	told := 0
	for range 200 {
		_, err := e.Entry(context.Background(), "r")
		var block *core.BlockError
		if !errors.As(err, &block) {
			continue
		}
		c.Advance(block.RetryAfter)
		assert.Equal(t, 1, enter(e, "r", 1), "%v", block)
		told++
	}
	assert.Greater(t, told, 50)
}

// A refusal by a window of days does not send its caller away for hours more.
func TestRetryAfterIsAboutRightByDays(t *testing.T) {
	e, c := newEngine(t, flow.Rule{Name: "days", Resource: "r", Limit: 1, Calendar: rule.Calendar{Period: calendar.Period{Count: 1, Unit: calendar.Month}}})
	require.Equal(t, 1, enter(e, "r", 1))
	for range 100 {
		left := refusedBy(t, e, "r").RetryAfter
		step := min(left, 17*time.Hour+7*time.Second)
		c.Advance(step)
		if step == left {
			break
		}
		assert.InDelta(t, left-step, refusedBy(t, e, "r").RetryAfter, float64(100*time.Second))
	}
	require.Equal(t, 1, enter(e, "r", 1))
}

func TestRetryAfterOfACallThatCanNeverPassIsNever(t *testing.T) {
	e, _ := newEngine(t,
		flow.Rule{Resource: "closed"},
		flow.Rule{Resource: "closed queue", Algorithm: flow.Throttle},
		flow.Rule{Resource: "window", Limit: 5},
		flow.Rule{Resource: "bucket", Limit: 5, Burst: 5, Algorithm: flow.TokenBucket},
		flow.Rule{Resource: "cold", Limit: 9, WarmUp: flow.WarmUp{Period: time.Minute}},
	)
	for _, never := range []*core.BlockError{
		refusedBy(t, e, "closed"), refusedBy(t, e, "closed queue"), refusedBy(t, e, "window", core.Tokens(6)),
		refusedBy(t, e, "bucket", core.Tokens(6)), refusedBy(t, e, "cold", core.Tokens(10)),
	} {
		assert.Equal(t, rule.Never, never.RetryAfter, "%v", never)
		assert.Contains(t, never.Error(), "cannot pass under the present rules")
	}
	large := refusedBy(t, e, "cold", core.Tokens(9))
	assert.Equal(t, 2*time.Second, large.RetryAfter, "then six more are saved up at the cold rate of three a second")
}

func TestRefusedWaiterGetsTheRetryAfterOfAllRules(t *testing.T) {
	e, _ := newEngine(t,
		throttle("r", 1, time.Second),
		flow.Rule{Name: "day", Resource: "r", Limit: 1, Window: 24 * time.Hour, Algorithm: flow.FixedWindow},
	)
	require.Equal(t, 1, enter(e, "r", 1))
	block := refusedBy(t, e, "r")
	assert.Equal(t, "day", block.Rule, "the queue would let it pass in a second, the window is full for longer")
	assert.Greater(t, block.RetryAfter, time.Hour)
}
