package outgoing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/rule"
)

func comeBackAfter(d time.Duration) outgoing.Answer {
	return outgoing.Answer{Result: outgoing.Rejected, RetryAfter: d}
}

func TestNoCallIsSentBeforeTheTargetWantsOne(t *testing.T) {
	t.Parallel()
	c := newClient(t, outgoing.ThrottleOptions{})
	require.NoError(t, c.call(comeBackAfter(5*time.Second)))
	for range 5000 {
		require.ErrorIs(t, c.call(accepted()), outgoing.ErrPaused)
		c.clock.Advance(time.Millisecond)
	}
	c.clock.Advance(time.Second)
	assert.NoError(t, c.call(accepted()))
}

func TestRefusalOfAPausedCallTellsWhenAllPass(t *testing.T) {
	t.Parallel()
	c := newClient(t, outgoing.ThrottleOptions{})
	require.NoError(t, c.call(comeBackAfter(5*time.Second)))
	var refusal *outgoing.Error
	require.ErrorAs(t, c.call(accepted()), &refusal)
	assert.Equal(t, 6*time.Second, refusal.RetryAfter, "5 s, and a fifth until all pass")
	assert.Equal(t, `outgoing: paused by the target: the call of "payments:443" was not sent, retry after 6s`, refusal.Error())
	c.clock.Advance(3456 * time.Millisecond)
	require.ErrorAs(t, c.call(accepted()), &refusal)
	assert.Equal(t, 2600*time.Millisecond, refusal.RetryAfter, "rounded up to two digits")
}

func TestPausedCallsComeBackLittleByLittle(t *testing.T) {
	t.Parallel()
	c := newClient(t, outgoing.ThrottleOptions{})
	require.NoError(t, c.call(comeBackAfter(10*time.Second)))
	c.clock.Advance(10 * time.Second)
	const parts, calls = 4, 1000 // of the two seconds in which calls come back
	for part := range parts {
		sent := 0
		for range calls {
			if c.call(accepted()) == nil {
				sent++
			}
			c.clock.Advance(2 * time.Second / parts / calls)
		}
		assert.InDelta(t, (float64(part)+0.5)/parts, float64(sent)/calls, 0.07, "part %d", part)
	}
	for range calls {
		require.NoError(t, c.call(accepted()))
	}
}

func TestPauseIsBounded(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		maxPause, want time.Duration
	}{
		{0, time.Minute}, // the default
		{2 * time.Second, 2 * time.Second},
	} {
		c := newClient(t, outgoing.ThrottleOptions{MaxPause: test.maxPause})
		require.NoError(t, c.call(comeBackAfter(1<<62)))
		c.clock.Advance(test.want - time.Millisecond)
		require.ErrorIs(t, c.call(accepted()), outgoing.ErrPaused)
		c.clock.Advance(time.Millisecond + min(test.want/5, 10*time.Second))
		require.NoError(t, c.call(accepted()))
	}
}

func TestNegativeMaxPauseIgnoresWhatTargetsSay(t *testing.T) {
	t.Parallel()
	c := newClient(t, outgoing.ThrottleOptions{MaxPause: -1})
	for range 5 {
		require.NoError(t, c.call(comeBackAfter(time.Minute)))
	}
}

func TestPauseIsForCallsOfItsPriorityAndLowerOnes(t *testing.T) {
	t.Parallel()
	c := newClient(t, outgoing.ThrottleOptions{})
	send := func(p rule.Priority, a outgoing.Answer) error {
		c.priority = p
		return c.call(a)
	}
	require.NoError(t, send(rule.PriorityNormal, comeBackAfter(5*time.Second)))
	require.NoError(t, send(rule.PriorityCritical, accepted()))
	require.NoError(t, send(rule.PriorityHigh, accepted()))
	require.ErrorIs(t, send(rule.PriorityNormal, accepted()), outgoing.ErrPaused)
	require.ErrorIs(t, send(rule.PriorityLow, accepted()), outgoing.ErrPaused)
	require.ErrorIs(t, send(rule.PrioritySheddable, accepted()), outgoing.ErrPaused)
	require.NoError(t, send(rule.PriorityCritical, comeBackAfter(time.Second)))
	require.ErrorIs(t, send(rule.PriorityCritical, accepted()), outgoing.ErrPaused)
	c.clock.Advance(1200 * time.Millisecond)
	require.NoError(t, send(rule.PriorityHigh, accepted()))
	require.ErrorIs(t, send(rule.PriorityNormal, accepted()), outgoing.ErrPaused, "the later end counts")
}

func TestRejectionsBeforeAPauseDoNotThrottleAfterIt(t *testing.T) {
	t.Parallel()
	c := newClient(t, outgoing.ThrottleOptions{})
	c.load(5, 100, 0)
	for c.call(comeBackAfter(10*time.Second)) != nil { // a probe gets through
		c.clock.Advance(100 * time.Millisecond)
	}
	c.clock.Advance(12 * time.Second)
	for range 100 {
		require.NoError(t, c.call(accepted()))
	}
}
