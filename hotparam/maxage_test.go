package hotparam_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
)

func TestPlaceOfAValueIsGivenBackAfterMaxAge(t *testing.T) {
	t.Parallel()
	var said []string
	r := hotparam.Rule{
		Resource: "r", Param: rule.StringsOf("user"), Concurrency: 2, MaxAge: time.Minute,
		Values: rule.NumberMapOf(text("named", 2)),
	}
	require.Empty(t, hotparam.Kind().Faults(r))
	l := hotparam.Kind().Of(r).WithDefaults().NewLimiter(rule.Env{
		Version: 1, Now: epoch, Seed: 1, Warn: func(m string) { said = append(said, m) }, Changed: func(clock.Instant, string, string, string) {},
	}).(interface {
		rule.Limiter
		rule.Finisher
	})
	for _, name := range []string{"a", "named"} {
		start := epoch
		if name == "named" {
			start = epoch.Add(time.Hour)
		}
		acquire := func(after time.Duration) (rule.Ticket, rule.Decision) {
			return l.Acquire(rule.Call{Now: start.Add(after), Tokens: 1, Attribute: user(name)})
		}
		leaked, decision := acquire(time.Second)
		require.Equal(t, rule.Pass, decision)
		ends, decision := acquire(30 * time.Second)
		require.Equal(t, rule.Pass, decision)
		_, decision = acquire(61*time.Second - 1)
		assert.Equal(t, rule.Block, decision, "not earlier")
		gauges := l.Status(start.Add(61*time.Second - 1)).Gauges
		assert.InDelta(t, 60, gauges[7], 9)
		before := gauges[8]

		_, decision = acquire(71 * time.Second)
		assert.Equal(t, rule.Pass, decision, "%s: one place is free again", name)
		_, decision = acquire(71 * time.Second)
		assert.Equal(t, rule.Block, decision)
		l.Done(leaked, rule.Exit{Now: start.Add(72 * time.Second)})
		_, decision = acquire(72 * time.Second)
		assert.Equal(t, rule.Block, decision, "nothing is given back any more")
		l.Done(ends, rule.Exit{Now: start.Add(73 * time.Second)})
		_, decision = acquire(73 * time.Second)
		assert.Equal(t, rule.Pass, decision)
		gauges = l.Status(start.Add(73 * time.Second)).Gauges
		assert.InDelta(t, before+1, gauges[8], 0)
		assert.Less(t, gauges[7], 20.0)
	}
	assert.Equal(t, "1 place was held for longer than maxAge, which is 1m0s, and counts as given back: "+
		"find what does not end its call, or raise maxAge", said[0])
	assert.LessOrEqual(t, len(said), 2)
}

func TestMaxAgeGoesWithConcurrencyOnly(t *testing.T) {
	t.Parallel()
	r := hotparam.Rule{Resource: "r", Param: rule.StringsOf("user"), Limit: 2, MaxAge: time.Minute}
	assert.Equal(t, []rule.Fault{{Field: "maxAge", Message: "has no effect without concurrency: remove it"}}, hotparam.Kind().Faults(r))
	r.Limit, r.Concurrency, r.MaxAge = 0, 2, time.Millisecond
	assert.Equal(t, []rule.Fault{{Field: "maxAge", Message: "is 1ms: must be from 10ms to 168h0m0s, or left out"}}, hotparam.Kind().Faults(r))
}

func TestCallsWithMaxAgeAllocateNothing(t *testing.T) {
	l := hotparam.Kind().Of(hotparam.Rule{
		Resource: "r", Param: rule.StringsOf("user"), Concurrency: 2, MaxAge: time.Minute,
	}).WithDefaults().NewLimiter(rule.Env{Version: 1, Now: epoch, Seed: 1}).(interface {
		rule.Limiter
		rule.Finisher
	})
	c := rule.Call{Now: epoch, Tokens: 1, Attribute: user("a")}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		c.Now = c.Now.Add(time.Second)
		ticket, _ := l.Acquire(c)
		l.Done(ticket, rule.Exit{Now: c.Now})
	}))
}
