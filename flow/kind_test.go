package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

var ( // a limiter does all that the engine can ask of one
	_ rule.Settler         = (*flow.RuleLimiter)(nil)
	_ rule.Activator       = (*flow.RuleLimiter)(nil)
	_ rule.Retirer         = (*flow.RuleLimiter)(nil)
	_ optional.Inheritor   = (*flow.RuleLimiter)(nil)
	_ optional.PassCounter = (*flow.RuleLimiter)(nil)
)

func TestExamplesOfTheKindShowEveryField(t *testing.T) {
	t.Parallel()
	kind := flow.Kind()
	shown := map[string]bool{}
	for _, example := range kind.Examples() {
		assert.Empty(t, example.Rule.Faults(), example.About)
		for _, field := range example.Fields {
			shown[field] = true
		}
	}
	for _, field := range kind.Fields() {
		assert.True(t, shown[field.Path], "%s is in no example", field.Path)
		assert.NotEmpty(t, field.About, field.Path)
	}
}

func TestKindFindsTheFaultsThatTheRuleFinds(t *testing.T) {
	t.Parallel()
	for _, r := range []flow.Rule{
		{},
		{Resource: "r", Limit: -1, Window: time.Nanosecond},
		{Match: "~(", Limit: 1, Burst: 3},
		{Resource: "r", Match: "*", Limit: 1, Algorithm: flow.Throttle, Buckets: 3},
	} {
		require.NotEmpty(t, flow.Kind().Faults(r))
		assert.Len(t, flow.Kind().Faults(r), len(flow.Kind().Faults(r)), "%+v", r)
	}
}

// A changed rule goes on from what was counted, in whatever way it counts.
func TestAdoptedLimiterGoesOnFromWhatWasCounted(t *testing.T) {
	t.Parallel()
	call := rule.Call{Now: epoch, Tokens: 1}
	for name, change := range map[string]func(*flow.Rule){
		"higher limit":  func(r *flow.Rule) { r.Limit = 6 },
		"longer window": func(r *flow.Rule) { r.Window = time.Minute },
		"token bucket":  func(r *flow.Rule) { r.Algorithm = flow.TokenBucket },
	} {
		before := flow.Kind().Of(reject(5)).WithDefaults()
		present := before.NewLimiter(rule.Env{Version: 1, Now: epoch})
		for range 5 {
			_, decision := present.Acquire(call)
			require.Equal(t, rule.Pass, decision)
		}
		changed := reject(5)
		change(&changed)
		next := flow.Kind().Of(changed).WithDefaults().Adopt(present, rule.Env{Version: 2, Now: epoch})
		_, decision := present.Acquire(call)
		assert.Equal(t, rule.Block, decision, "%s: the present one goes on as it was", name)
		next.(rule.Activator).Activate(epoch)
		_, decision = present.Acquire(call)
		assert.Equal(t, rule.Stale, decision, name)
		passed := 0
		for _, decision := next.Acquire(call); decision == rule.Pass; _, decision = next.Acquire(call) {
			passed++
		}
		assert.LessOrEqual(t, passed, 1, "%s: five of the limit are taken", name)
	}
}

// What calls settle to is what counts, however they settle.
func TestSettledTokensAreThoseThatCount(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]flow.Rule{
		"window":       reject(100),
		"fixed window": {Resource: "r", Limit: 100, Algorithm: flow.FixedWindow},
		"bucket":       {Resource: "r", Limit: 100, Algorithm: flow.TokenBucket},
	} {
		l := flow.Kind().Of(r).WithDefaults().NewLimiter(rule.Env{Version: 1, Now: epoch}).(rule.Settler)
		remaining := func() int64 { return l.Status(epoch).Quota.Remaining }
		reserved, decision := l.Acquire(rule.Call{Now: epoch, Tokens: 10})
		require.Equal(t, rule.Pass, decision)
		require.EqualValues(t, 90, remaining(), name)
		l.Settle(epoch, epoch, reserved, 25) // it cost 35
		assert.EqualValues(t, 65, remaining(), name)
		l.Settle(epoch, epoch, reserved, -30) // no, 5
		assert.EqualValues(t, 95, remaining(), name)
		l.Settle(epoch, epoch, reserved, 145) // no, 150: more than the limit
		assert.EqualValues(t, 0, remaining(), name)
		_, decision = l.Acquire(rule.Call{Now: epoch, Tokens: 1})
		assert.Equal(t, rule.Block, decision, name)
		l.Settle(epoch, epoch, reserved, -51)
		assert.EqualValues(t, 1, remaining(), name)
		l.GiveBack(epoch, reserved, 99)
		assert.EqualValues(t, 100, remaining(), name)
	}
}

// A call that cost more than it took puts off those behind it.
func TestThrottleIsPutOffByWhatACallCostMore(t *testing.T) {
	t.Parallel()
	l := flow.Kind().Of(throttle(10, 0)).WithDefaults().NewLimiter(rule.Env{Version: 1, Now: epoch}).(rule.Settler)
	reserved, decision := l.Acquire(rule.Call{Now: epoch, Tokens: 1})
	require.Equal(t, rule.Pass, decision)
	next := rule.Call{Now: epoch, Tokens: 1}
	assert.Equal(t, 100*time.Millisecond, l.RetryAfter(next))
	l.Settle(epoch, epoch, reserved, 9)
	assert.Equal(t, time.Second, l.RetryAfter(next))
	l.Settle(epoch, epoch, reserved, -9)
	assert.Equal(t, time.Second, l.RetryAfter(next), "nobody passes sooner for it")
}
