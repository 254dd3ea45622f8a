package outgoing_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

func accepted() outgoing.Answer { return outgoing.Answer{Result: outgoing.Accepted} }
func rejected() outgoing.Answer { return outgoing.Answer{Result: outgoing.Rejected} }

func TestHealthyTargetIsNeverThrottled(t *testing.T) {
	t.Parallel()
	for _, rate := range []int{1, 10, 1000} {
		all := sum(newClient(t, outgoing.ThrottleOptions{}).load(30, rate, 1.01*float64(rate)))
		assert.Equal(t, all.asked, all.sent, "%d calls a second", rate)
	}
}

func TestTargetThatAcceptsMoreThanHalfIsNotThrottled(t *testing.T) {
	t.Parallel()
	c := newClient(t, outgoing.ThrottleOptions{})
	for i := range 3000 {
		answer := accepted()
		if i%5 < 2 {
			answer = rejected()
		}
		require.NoError(t, c.call(answer))
		c.clock.Advance(time.Millisecond)
	}
}

func TestOverloadedTargetGetsKTimesWhatItAccepts(t *testing.T) {
	t.Parallel()
	const rate, capacity = 3000, 1000
	for _, k := range []float64{1.5, 2, 2.5} {
		c := newClient(t, outgoing.ThrottleOptions{K: k})
		c.load(10, rate, capacity) // finds out
		steady := sum(c.load(60, rate, capacity))
		assert.InEpsilon(t, 60*capacity, steady.accepted, 0.01, "as much as it can")
		assert.InEpsilon(t, k*60*capacity, steady.sent, 0.03, "K = %v", k)
	}
}

func TestThrottleActsWithinSecondsOfAnOutage(t *testing.T) {
	t.Parallel()
	for _, rate := range []int{10, 100, 1000} {
		c := newClient(t, outgoing.ThrottleOptions{})
		c.load(300, rate, 2*float64(rate)) // a long healthy past
		outage := c.load(30, rate, 0)
		assert.Less(t, sum(outage[5:10]).sent, sum(outage[5:10]).asked/4, "%d calls a second", rate)
		assert.LessOrEqual(t, sum(outage[20:]).sent, 20+10*rate/50, "one probe a second and one call in a hundred")
		for i, s := range outage[20:] {
			assert.GreaterOrEqual(t, s.sent, 1, "second %d has no probe", 20+i)
		}
	}
}

func TestOneCallInAHundredProbesATargetThatIsDown(t *testing.T) {
	t.Parallel()
	const rate, seconds = 5000, 60
	c := newClient(t, outgoing.ThrottleOptions{})
	c.load(30, rate, 0)
	sent := sum(c.load(seconds, rate, 0)).sent
	assert.InEpsilon(t, seconds*rate/100+seconds, sent, 0.09)
}

func TestRecoveryIsNoticedWithinSeconds(t *testing.T) {
	t.Parallel()
	for _, priority := range []rule.Priority{rule.PriorityCritical, rule.PriorityNormal, rule.PriorityLow} {
		for _, rate := range []int{10, 100, 1000} {
			c := newClient(t, outgoing.ThrottleOptions{})
			c.priority = priority
			c.load(60, rate, 2*float64(rate))
			c.load(200, rate, 0)
			back := c.load(60, rate, 2*float64(rate))
			all := sum(back[20:])
			assert.Equal(t, all.asked, all.sent, "all calls pass 20 s after the end of an outage: %v, %d a second", priority, rate)
		}
	}
}

func TestSheddableCallsAloneNoticeARecovery(t *testing.T) {
	t.Parallel()
	c := newClient(t, outgoing.ThrottleOptions{})
	c.priority = rule.PrioritySheddable
	c.load(200, 100, 0)
	back := c.load(120, 100, 200)
	all := sum(back[60:])
	assert.Equal(t, all.asked, all.sent)
}

func TestImportantCallsAreThrottledLast(t *testing.T) {
	t.Parallel()
	const rate, capacity = 1000, 400
	c := newClient(t, outgoing.ThrottleOptions{})
	passed := map[rule.Priority]int{}
	all := []rule.Priority{
		rule.PriorityCritical, rule.PriorityHigh, rule.PriorityNormal, rule.PriorityLow, rule.PrioritySheddable,
	}
	tokens := 0.0
	const seconds = 60
	for i := range seconds * rate {
		tokens = min(tokens+capacity/float64(rate), 5)
		c.priority = all[i%len(all)]
		answer := rejected()
		if tokens >= 1 {
			answer = accepted()
		}
		if c.call(answer) == nil {
			passed[c.priority]++
			if answer == accepted() {
				tokens--
			}
		}
		c.clock.Advance(time.Second / rate)
	}
	const each = seconds * rate / 5
	assert.GreaterOrEqual(t, passed[rule.PriorityCritical], each*99/100)
	assert.GreaterOrEqual(t, passed[rule.PriorityHigh], each*99/100)
	assert.Greater(t, passed[rule.PriorityNormal], passed[rule.PriorityLow]*11/10)
	assert.Greater(t, passed[rule.PriorityLow], passed[rule.PrioritySheddable]*11/10)
}

func TestFewFailuresOfAQuietTargetThrottleNothing(t *testing.T) {
	t.Parallel()
	c := newClient(t, outgoing.ThrottleOptions{})
	for range 9 {
		require.NoError(t, c.call(rejected()))
		c.clock.Advance(time.Second)
	}
	assert.Zero(t, c.stats().Refusal)
	require.NoError(t, c.call(rejected()))
	assert.InDelta(t, 10.0/11, c.stats().Refusal, 1e-9)
}

func TestIgnoredCallsCountForNothing(t *testing.T) {
	t.Parallel()
	c := newClient(t, outgoing.ThrottleOptions{})
	for range 1000 {
		require.NoError(t, c.call(outgoing.Answer{}))
	}
	assert.Equal(t, outgoing.TargetStats{Target: host}, c.stats())
}

func TestOldRejectionsAreForgottenAfterTheWindow(t *testing.T) {
	t.Parallel()
	c := newClient(t, outgoing.ThrottleOptions{Window: 12 * time.Second})
	for range 10 {
		require.NoError(t, c.call(rejected()))
	}
	c.clock.Advance(11 * time.Second)
	assert.InDelta(t, 10.0/11, c.stats().Refusal, 1e-9)
	c.clock.Advance(time.Second)
	assert.Zero(t, c.stats().Refusal)
}

func TestTargetsAreThrottledApart(t *testing.T) {
	t.Parallel()
	c := newClient(t, outgoing.ThrottleOptions{})
	c.load(10, 1000, 0)
	for range 1000 {
		call, err := outgoing.Begin(t.Context(), c.throttle, nil, "another:443", rule.PriorityNormal)
		require.NoError(t, err)
		call.End(accepted())
	}
}

func TestRefusalTellsItsCauseAndIsARefusalOfPenstock(t *testing.T) {
	t.Parallel()
	c := newClient(t, outgoing.ThrottleOptions{})
	c.load(10, 1000, 0)
	var err error
	for err == nil {
		err = c.call(rejected())
	}
	require.ErrorIs(t, err, outgoing.ErrThrottled)
	require.ErrorIs(t, err, core.ErrBlocked)
	require.NotErrorIs(t, err, outgoing.ErrPaused)
	var refusal *outgoing.Error
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, host, refusal.Target)
	assert.Zero(t, refusal.RetryAfter)
	var block *core.BlockError
	require.ErrorAs(t, err, &block)
	assert.Equal(t, core.BlockError{Resource: host, Kind: "outgoing", Rule: "throttle", Reason: rule.Overloaded}, *block)
	assert.Equal(t, `outgoing: throttled: the call of "payments:443" was not sent`, err.Error())
}

func TestStatsCountEveryCall(t *testing.T) {
	t.Parallel()
	c := newClient(t, outgoing.ThrottleOptions{})
	all := sum(c.load(20, 1000, 200))
	paused := 0
	require.NoError(t, c.callUntilSent(outgoing.Answer{Result: outgoing.Rejected, RetryAfter: time.Minute}, &all))
	for range 100 {
		if errors.Is(c.call(accepted()), outgoing.ErrPaused) {
			paused++
		}
	}
	stats := c.stats()
	assert.EqualValues(t, all.accepted, stats.Accepted)
	assert.EqualValues(t, all.sent-all.accepted, stats.Rejected)
	assert.EqualValues(t, all.asked-all.sent, stats.Throttled)
	assert.EqualValues(t, paused, stats.Paused)
	assert.Equal(t, 100, paused)
	assert.Equal(t, 70*time.Second, stats.PausedFor)
}

// callUntilSent makes calls until one is sent.
func (c *client) callUntilSent(a outgoing.Answer, count *second) error {
	for {
		count.asked++
		err := c.call(a)
		if err == nil {
			count.sent++
			return nil
		}
		if !errors.Is(err, outgoing.ErrThrottled) {
			return err
		}
	}
}

func TestTargetsBeyondTheBoundAreNotLimitedAndCounted(t *testing.T) {
	t.Parallel()
	c := newClient(t, outgoing.ThrottleOptions{MaxTargets: 3})
	begin := func(target string) {
		call, err := outgoing.Begin(t.Context(), c.throttle, nil, target, rule.PriorityNormal)
		require.NoError(t, err)
		call.End(rejected())
	}
	for i := range 5 {
		begin(fmt.Sprint(i))
	}
	begin(strings.Repeat("x", 513))
	assert.Len(t, c.throttle.Stats().Targets, 3)
	assert.EqualValues(t, 3, c.throttle.Stats().Untracked)

	c.clock.Advance(2 * time.Minute) // those that were not called may go
	begin("0")
	begin("new")
	names := []string{}
	for _, target := range c.throttle.Stats().Targets {
		names = append(names, target.Target)
	}
	assert.Equal(t, []string{"0", "new"}, names)
	assert.EqualValues(t, 3, c.throttle.Stats().Untracked)
}

func TestTargetThatOnlyStatisticsLookAtIsForgotten(t *testing.T) {
	t.Parallel()
	c := newClient(t, outgoing.ThrottleOptions{MaxTargets: 1})
	require.NoError(t, c.call(accepted()))
	for range 18 { // as a collector of metrics does
		c.clock.Advance(10 * time.Second)
		c.stats()
	}
	call, err := outgoing.Begin(t.Context(), c.throttle, nil, "another", rule.PriorityNormal)
	require.NoError(t, err)
	call.End(accepted())
	assert.Equal(t, "another", c.stats().Target)
	assert.Zero(t, c.throttle.Stats().Untracked)
}

func TestPausedTargetIsNotForgotten(t *testing.T) {
	t.Parallel()
	c := newClient(t, outgoing.ThrottleOptions{MaxTargets: 1, Window: time.Second})
	require.NoError(t, c.call(outgoing.Answer{Result: outgoing.Rejected, RetryAfter: time.Minute}))
	c.clock.Advance(30 * time.Second)
	_, err := outgoing.Begin(t.Context(), c.throttle, nil, "another", rule.PriorityNormal)
	require.NoError(t, err)
	assert.ErrorIs(t, c.call(accepted()), outgoing.ErrPaused)
}

func TestSameSeedRefusesTheSameCalls(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) (outcomes []bool) {
		c := newClient(t, outgoing.ThrottleOptions{Seed: seed})
		for range 2000 {
			outcomes = append(outcomes, c.call(rejected()) == nil)
			c.clock.Advance(time.Millisecond)
		}
		return outcomes
	}
	first := run(1)
	assert.Equal(t, first, run(1))
	assert.NotEqual(t, first, run(2))
}

func TestNothingLimitsWithoutThrottleAndBudgets(t *testing.T) {
	t.Parallel()
	for range 100 {
		call, err := outgoing.Begin(context.Background(), nil, nil, host, rule.PriorityNormal)
		require.NoError(t, err)
		call.End(outgoing.Answer{Result: outgoing.Rejected, RetryAfter: time.Hour, NoRetry: true})
	}
}

func TestAllMistakesInOptionsAreReported(t *testing.T) {
	t.Parallel()
	_, err := outgoing.NewThrottle(outgoing.ThrottleOptions{
		K: 1, Window: time.Millisecond, MinCalls: -1, MaxPause: 2 * time.Hour, MaxTargets: -1,
	})
	for _, want := range []string{
		"outgoing: ThrottleOptions.K is 1: must be more than 1 and at most 100",
		"outgoing: ThrottleOptions.Window is 1ms: must be from 1s to 1h0m0s",
		"outgoing: ThrottleOptions.MinCalls is -1: must be from 1 to 1000000",
		"outgoing: ThrottleOptions.MaxPause is 2h0m0s: must be at most 1h0m0s; a negative one ignores what targets say",
		"outgoing: ThrottleOptions.MaxTargets is -1: must be from 1 to 100000",
	} {
		require.ErrorContains(t, err, want)
	}
	for _, k := range []float64{math.NaN(), math.Inf(1), -2} {
		_, err = outgoing.NewThrottle(outgoing.ThrottleOptions{K: k})
		require.Error(t, err)
	}
	_, err = outgoing.NewRetryBudgets(outgoing.RetryOptions{Ratio: 2, MinPerSecond: math.NaN(), Burst: -1, MaxTargets: -1})
	for _, want := range []string{
		"outgoing: RetryOptions.Ratio is 2: must be from 0.001 to 1",
		"outgoing: RetryOptions.MinPerSecond is NaN: must be at most 1000000; a negative one is none",
		"outgoing: RetryOptions.Burst is -1: must be from 1 to 1000000",
		"outgoing: RetryOptions.MaxTargets is -1: must be from 1 to 100000",
	} {
		require.ErrorContains(t, err, want)
	}
	_, err = outgoing.NewRetryBudget(outgoing.RetryOptions{Ratio: math.NaN()})
	require.Error(t, err)
}
