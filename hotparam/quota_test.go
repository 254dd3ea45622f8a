package hotparam_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
)

// So many calls pass as the quota says, and the next one when it says.
func TestQuotaTellsWhatPasses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		of := hotparam.Rule{
			Limit:     float64(rapid.IntRange(1, 8).Draw(r, "limit")),
			Algorithm: rapid.SampledFrom([]hotparam.Algorithm{hotparam.TokenBucket, hotparam.SlidingWindow, hotparam.Throttle}).Draw(r, "algorithm"),
			Window:    time.Minute, Resource: "r", Param: rule.StringsOf("user"),
		}
		s := newService(t, of)
		s.t = r
		quota := func() *rule.Quota { return s.limiter.(rule.QuotaReader).QuotaOf(s.call(user("ann"), 1)) }
		for range rapid.IntRange(0, 20).Draw(r, "calls") {
			s.ask(user("ann"))
			s.now = s.now.Add(time.Duration(rapid.Int64Range(0, int64(10*time.Second)).Draw(r, "pause")))
		}
		q := quota()
		require.InDelta(r, of.Limit, q.Limit, 0)
		if q.Reset > 0 {
			before := *s
			before.now = s.now.Add(q.Reset - 1)
			require.Equal(r, q.Remaining, before.limiter.(rule.QuotaReader).QuotaOf(before.call(user("ann"), 1)).Remaining)
			before.now = s.now.Add(q.Reset)
			require.Greater(r, before.limiter.(rule.QuotaReader).QuotaOf(before.call(user("ann"), 1)).Remaining, q.Remaining)
		}
		require.EqualValues(r, q.Remaining, s.passes(user("ann")))
		require.Zero(r, quota().Remaining)
		if q.Reset == 0 && of.Algorithm != hotparam.Throttle {
			require.InDelta(r, of.Limit, float64(q.Remaining), 0, "all of it")
		}
	})
}

func TestQuotaOfAPenalisedValueIsNothing(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(func(r *hotparam.Rule) {
		r.Limit, r.Burst, r.Penalty = 1, 1, hotparam.Penalty{After: 2, Within: time.Minute, For: time.Hour}
	}))
	s.passes(user("ann"))
	s.ask(user("ann"))
	s.at(30 * time.Minute)
	assert.Equal(t, &rule.Quota{Limit: 1, Effective: 1, Window: time.Second, Reset: 30 * time.Minute},
		s.limiter.(rule.QuotaReader).QuotaOf(s.call(user("ann"), 1)))
	assert.EqualValues(t, 1, s.limiter.(rule.QuotaReader).QuotaOf(s.call(user("bob"), 1)).Remaining)
	assert.Nil(t, s.limiter.(rule.QuotaReader).QuotaOf(s.call(rule.Attribute{}, 1)), "the rule does not limit it")
}
