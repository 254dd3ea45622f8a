package outgoing_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

func newBudget(t testing.TB, options outgoing.RetryOptions) (*outgoing.RetryBudget, *clock.Virtual) {
	t.Helper()
	virtual := clock.NewVirtual(time.Time{})
	options.Clock = virtual
	budget, err := outgoing.NewRetryBudget(options)
	require.NoError(t, err)
	return budget, virtual
}

// allowed asks for retries until one is refused, and returns how many were allowed.
func allowed(b *outgoing.RetryBudget) (n int) {
	for b.Allow() {
		n++
	}
	return n
}

func TestRetriesAreAShareOfCallsAndSomeASecond(t *testing.T) {
	t.Parallel()
	b, virtual := newBudget(t, outgoing.RetryOptions{Ratio: 0.25, MinPerSecond: 2, Burst: 8})
	for _, step := range []struct {
		wait  time.Duration
		calls int
		want  int
	}{
		{0, 0, 8}, // it starts full
		{0, 3, 0},
		{0, 1, 1}, // the fourth
		{time.Second, 0, 2},
		{250 * time.Millisecond, 0, 0},
		{250 * time.Millisecond, 0, 1},
		{250 * time.Millisecond, 2, 1}, // halves add up
		{time.Hour, 1000, 8},
		{0, 16, 4},
		{0, 1000, 8},
	} {
		virtual.Advance(step.wait)
		for range step.calls {
			b.Call()
		}
		assert.Equal(t, step.want, allowed(b), "%+v", step)
	}
}

func TestRetryBudgetWithoutAMinimumAllowsTheShareOnly(t *testing.T) {
	t.Parallel()
	b, virtual := newBudget(t, outgoing.RetryOptions{MinPerSecond: -1, Burst: 1})
	assert.Equal(t, 1, allowed(b))
	virtual.Advance(24 * time.Hour)
	assert.Zero(t, allowed(b))
	for range 10 {
		b.Call()
	}
	assert.Equal(t, 1, allowed(b))
}

func TestRetryBudgetFillsAtEveryRateAndAfterLongRests(t *testing.T) {
	t.Parallel()
	for _, perSecond := range []float64{0.001, 0.1, 1, 3, 1e6} {
		b, virtual := newBudget(t, outgoing.RetryOptions{MinPerSecond: perSecond, Burst: 5})
		require.Equal(t, 5, allowed(b))
		interval := time.Duration(float64(time.Second)/perSecond) + 1 // rounded up
		for range 20 {
			virtual.Advance(interval)
			require.LessOrEqual(t, 1, allowed(b), "%v a second", perSecond)
		}
		virtual.Advance(100 * 365 * 24 * time.Hour)
		require.Equal(t, 5, allowed(b))
	}
}

func TestRetryBudgetThatIsOftenAskedLosesNoTime(t *testing.T) {
	t.Parallel()
	b, virtual := newBudget(t, outgoing.RetryOptions{MinPerSecond: 0.001, Burst: 1})
	require.Equal(t, 1, allowed(b))
	const step = 1500 * time.Microsecond // in 1 ms a millionth of a retry is added
	for range 1000*time.Second/step - 1 {
		virtual.Advance(step)
		require.Zero(t, allowed(b))
	}
	virtual.Advance(2 * step)
	require.Equal(t, 1, allowed(b))
}

func TestRetryStatsCountEverything(t *testing.T) {
	t.Parallel()
	b, _ := newBudget(t, outgoing.RetryOptions{Burst: 3})
	for range 7 {
		b.Call()
	}
	require.Equal(t, 3, allowed(b))
	b.Call()
	stats := b.Stats()
	assert.InDelta(t, 0.1, stats.Tokens, 1e-9)
	stats.Tokens = 0
	assert.Equal(t, outgoing.RetryStats{Target: "(other)", Calls: 8, Retries: 3, Refused: 1}, stats)
}

func newBudgets(t testing.TB, options outgoing.RetryOptions) (*outgoing.RetryBudgets, *clock.Virtual) {
	t.Helper()
	virtual := clock.NewVirtual(time.Time{})
	options.Clock = virtual
	budgets, err := outgoing.NewRetryBudgets(options)
	require.NoError(t, err)
	return budgets, virtual
}

func TestAttemptsAfterTheFirstAreRetries(t *testing.T) {
	t.Parallel()
	budgets, _ := newBudgets(t, outgoing.RetryOptions{Burst: 2})
	attempt := func(ctx context.Context) error {
		call, err := outgoing.Begin(ctx, nil, budgets, host, rule.PriorityNormal)
		if err == nil {
			call.End(rejected())
		}
		return err
	}
	ctx := outgoing.WithRetries(t.Context())
	for range 3 { // the call and two retries
		require.NoError(t, attempt(ctx))
	}
	err := attempt(ctx)
	require.ErrorIs(t, err, outgoing.ErrRetryBudget)
	require.ErrorIs(t, err, core.ErrBlocked)
	for range 5 {
		require.NoError(t, attempt(t.Context()), "a call without the context is no retry")
		require.NoError(t, attempt(outgoing.WithRetries(t.Context())), "nor is the first of another")
	}
	require.NoError(t, attempt(outgoing.AsRetry(t.Context())), "ten calls allow one retry")
	require.ErrorIs(t, attempt(outgoing.AsRetry(t.Context())), outgoing.ErrRetryBudget)
	assert.EqualValues(t, 11, budgets.Stats()[0].Calls)
	assert.EqualValues(t, 3, budgets.Stats()[0].Retries)
	assert.EqualValues(t, 2, budgets.Stats()[0].Refused)
}

func TestAttemptThatWasNotSentIsNoAttempt(t *testing.T) {
	t.Parallel()
	c := newClient(t, outgoing.ThrottleOptions{})
	require.NoError(t, c.call(comeBackAfter(time.Second)))
	budgets, _ := newBudgets(t, outgoing.RetryOptions{})
	ctx := outgoing.WithRetries(t.Context())
	_, err := outgoing.Begin(ctx, c.throttle, budgets, host, rule.PriorityNormal)
	require.ErrorIs(t, err, outgoing.ErrPaused)
	c.clock.Advance(2 * time.Second)
	_, err = outgoing.Begin(ctx, c.throttle, budgets, host, rule.PriorityNormal)
	require.NoError(t, err)
	assert.EqualValues(t, 1, budgets.Stats()[0].Calls)
	assert.Zero(t, budgets.Stats()[0].Retries)
}

func TestTargetCanForbidRetries(t *testing.T) {
	t.Parallel()
	budgets, _ := newBudgets(t, outgoing.RetryOptions{})
	ctx := outgoing.WithRetries(t.Context())
	call, err := outgoing.Begin(ctx, nil, budgets, host, rule.PriorityNormal)
	require.NoError(t, err)
	call.End(outgoing.Answer{Result: outgoing.Rejected, NoRetry: true})
	_, err = outgoing.Begin(ctx, nil, budgets, host, rule.PriorityNormal)
	require.ErrorIs(t, err, outgoing.ErrNotRetryable)
	_, err = outgoing.Begin(outgoing.WithRetries(t.Context()), nil, budgets, host, rule.PriorityNormal)
	require.NoError(t, err, "other calls go on")
}

func TestTargetsHaveBudgetsOfTheirOwn(t *testing.T) {
	t.Parallel()
	budgets, _ := newBudgets(t, outgoing.RetryOptions{Burst: 3})
	assert.Equal(t, 3, allowed(budgets.Target("a")))
	assert.Equal(t, 3, allowed(budgets.Target("b")))
	assert.Zero(t, allowed(budgets.Target("a")))
}

func TestTargetsBeyondTheBoundShareABudget(t *testing.T) {
	t.Parallel()
	budgets, virtual := newBudgets(t, outgoing.RetryOptions{Burst: 3, MaxTargets: 1, MinPerSecond: -1})
	first := budgets.Target("a")
	assert.Equal(t, 3, allowed(first))
	assert.Equal(t, 3, allowed(budgets.Target("b")))
	assert.Zero(t, allowed(budgets.Target("c")))
	virtual.Advance(time.Hour)
	assert.Zero(t, allowed(budgets.Target("d")), "a has retried: its budget is kept")
	for range 100 {
		first.Call()
	}
	virtual.Advance(2 * time.Second)
	assert.Equal(t, 3, allowed(budgets.Target("e")), "a is full and was not asked for: e has its place")
	assert.Zero(t, allowed(first), "what was forgotten allows nothing more")
	stats := budgets.Stats()
	require.Len(t, stats, 2)
	assert.Equal(t, "(other)", stats[1].Target)
}

// TestLoopStopsWhenTheBudgetIsExhausted is the loop of the documentation: 1000 calls of a
// service that is down, with up to three retries each.
func TestLoopStopsWhenTheBudgetIsExhausted(t *testing.T) {
	t.Parallel()
	b, _ := newBudget(t, outgoing.RetryOptions{})
	sent := 0
	send := func() error { sent++; return errors.New("down") }
	for range 1000 {
		b.Call()
		err := send()
		for range 3 {
			if err == nil || !b.Allow() {
				break
			}
			err = send()
		}
	}
	assert.Equal(t, 1000+10+99, sent, "and not 4000: a burst, and a tenth of all calls but the first, which finds the budget full")
}
