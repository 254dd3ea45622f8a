package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// imposedFlow returns a flow rule on "r" with its limiter.
func imposedFlow(r flow.Rule, now clock.Instant) core.Imposed {
	r.Resource = "r"
	of := flow.Kind().Of(r).WithDefaults()
	return core.Imposed{Rule: of, Limiter: of.NewLimiter(rule.Env{Version: 1, Now: now})}
}

func always(decision rule.Decision) func(rule.Call) rule.Decision {
	return func(rule.Call) rule.Decision { return decision }
}

func blockOf(t *testing.T, err error) core.BlockError {
	t.Helper()
	var blocked *core.BlockError
	require.ErrorAs(t, err, &blocked)
	return *blocked
}

func TestRefusalByAStepGivesBackWhatWasTaken(t *testing.T) {
	e, c := newEngine(t)
	first := &finisher{}
	closed := &toy{decide: always(rule.Block), retry: time.Minute}
	window := imposedFlow(flow.Rule{Limit: 3}, c.Now())
	e.Impose("r", toyRule("first", first), toyRule("second", closed), window)
	for range 10 {
		_, err := e.Entry(t.Context(), "r")
		require.Equal(t, core.BlockError{
			Resource: "r", Kind: "toy", Rule: "second", Reason: rule.Overloaded, RetryAfter: time.Minute,
		}, blockOf(t, err))
	}
	assert.Empty(t, first.out)
	assert.Equal(t, 10, first.back)
	assert.Empty(t, first.exits)
	closed.decide = nil
	assert.Equal(t, 3, enter(e, "r", 10), "the window gave nothing before")
	assert.Equal(t, 17, first.back, "nor is a ticket kept that a window refuses")
	assert.Len(t, first.exits, 3)
	assert.Zero(t, e.Resource("r").Snapshot().InFlight)
}

func TestRefusalByAQueueGivesBackTickets(t *testing.T) {
	e, c := newEngine(t)
	first := &finisher{}
	e.Impose("r", toyRule("first", first), imposedFlow(throttle("r", 1, 0), c.Now()))
	assert.Equal(t, 1, enter(e, "r", 3))
	assert.Empty(t, first.out)
	assert.Equal(t, 2, first.back)
}

func TestFinishersLearnOnceHowACallEnded(t *testing.T) {
	e, c := newEngine(t)
	var order []string
	first, second := &finisher{toy: toy{order: &order, name: "first"}}, &finisher{toy: toy{order: &order, name: "second"}}
	e.Impose("r", toyRule("1", first), toyRule("2", second))
	start := c.Now()
	guard, err := e.Entry(t.Context(), "r")
	require.NoError(t, err)
	c.Advance(time.Second)
	guard.Fail(errors.New("broken"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(guard.Exit)
	}
	wg.Wait()
	want := []rule.Exit{{Now: start.Add(time.Second), Start: start, Failed: true}}
	assert.Equal(t, want, first.exits)
	assert.Equal(t, want, second.exits)
	assert.Equal(t, []string{"second", "first"}, order, "the last first")
	assert.EqualValues(t, 1, e.Resource("r").Snapshot().Completed)
}

// A copy of a guard, which is a mistake of the program, reaches no other call.
func TestExitOfACopyEndsNoOtherCall(t *testing.T) {
	e, _ := newEngine(t)
	l := &finisher{}
	e.Impose("r", toyRule("l", l), imposed(rule.PhaseAccess, rule.Overloaded, toyConfig{Name: "shadow", Shadow: true},
		&toy{decide: always(rule.Block)}))
	for range 50 { // whichever record the pool returns
		guard, err := e.Entry(t.Context(), "r")
		require.NoError(t, err)
		stale := *core.CopyGuard(&guard)
		require.NotNil(t, stale.WouldBlock())
		guard.Exit()
		require.NotNil(t, guard.WouldBlock(), "it is known after the exit, too")
		next, err := e.Entry(t.Context(), "r")
		require.NoError(t, err)
		before := len(l.exits)
		stale.Settle(100)
		stale.Exit()
		require.Len(t, l.exits, before)
		require.Nil(t, stale.WouldBlock())
		require.Len(t, l.out, 1)
		next.Exit()
		require.Len(t, l.exits, before+1)
		require.Empty(t, l.out)
	}
	assert.Zero(t, l.settled)
	assert.EqualValues(t, 100, e.Resource("r").Snapshot().Completed)
}

func TestStaleStepIsAskedAgain(t *testing.T) {
	e, c := newEngine(t)
	first := &finisher{}
	asked := 0
	stale := &toy{decide: func(rule.Call) rule.Decision {
		if asked++; asked < 4 {
			c.Advance(time.Millisecond)
			return rule.Stale
		}
		return rule.Pass
	}}
	e.Impose("r", toyRule("1", first), toyRule("2", stale))
	assert.Equal(t, 1, enter(e, "r", 1))
	assert.Equal(t, 4, asked)
	assert.Equal(t, c.Now(), stale.calls[3].Now, "the time is read again")
	assert.Empty(t, first.out)
	assert.Equal(t, 3, first.back)
	assert.Len(t, first.exits, 1)
}

func TestPanickingStepTakesNothing(t *testing.T) {
	e, _ := newEngine(t)
	first := &finisher{}
	broken := &toy{decide: func(rule.Call) rule.Decision { panic("oops") }}
	e.Impose("r", toyRule("1", first), toyRule("2", broken))
	for range 10 {
		require.PanicsWithValue(t, "oops", func() { _, _ = e.Entry(t.Context(), "r") })
	}
	s := e.Resource("r").Snapshot()
	assert.Zero(t, s.InFlight)
	assert.Zero(t, s.Passed)
	assert.Equal(t, 10, first.back)
	assert.Empty(t, first.out)
	broken.decide = nil
	assert.Equal(t, 3, enter(e, "r", 3))
}

// The same for a limiter that panics after it was stale, when calls are in an admission.
func TestStepThatPanicsLateTakesNothing(t *testing.T) {
	e, _ := newEngine(t)
	first, asked := &finisher{}, 0
	broken := &toy{decide: func(rule.Call) rule.Decision {
		if asked++; asked == 1 {
			return rule.Stale
		}
		panic("oops")
	}}
	e.Impose("r", toyRule("1", first), toyRule("2", broken))
	require.PanicsWithValue(t, "oops", func() { _, _ = e.Entry(t.Context(), "r") })
	assert.Equal(t, 2, first.back)
	assert.Empty(t, first.out)
}

func TestAShadowStepRefusesNobody(t *testing.T) {
	e, _ := newEngine(t)
	would := &finisher{toy: toy{decide: always(rule.Block), retry: time.Minute}}
	passing, last := &finisher{}, &toy{decide: always(rule.Block)}
	shadow := func(name string, l rule.Limiter) core.Imposed {
		return imposed(rule.PhaseAccess, rule.Denied, toyConfig{Name: name, Shadow: true}, l)
	}
	e.Impose("r", shadow("blocks", would), shadow("passing", passing), shadow("waits", &toy{decide: always(rule.Stale)}),
		shadow("zlast", last))
	guard, err := e.Entry(t.Context(), "r", core.Tokens(3))
	require.NoError(t, err)
	assert.Equal(t, &core.BlockError{
		Resource: "r", Kind: "toy", Rule: "blocks", Reason: rule.Denied, RetryAfter: time.Minute,
	}, guard.WouldBlock())
	guard.Settle(5)
	guard.Exit()
	assert.Equal(t, "blocks", guard.WouldBlock().Rule)
	assert.Len(t, passing.exits, 1, "it took part in the call")
	assert.Equal(t, 2, passing.settled)
	assert.Empty(t, would.exits)
	assert.Zero(t, would.settled)
	counts := map[string]uint64{}
	for _, of := range e.Resource("r").Snapshot().Rules {
		assert.Zero(t, of.Blocked)
		counts[of.Name] = of.WouldBlock
	}
	assert.Equal(t, map[string]uint64{"blocks": 1, "passing": 0, "waits": 0, "zlast": 1}, counts)
}

func TestNineRulesAndMore(t *testing.T) {
	e, _ := newEngine(t)
	for _, n := range []int{8, 9, 30, 9} {
		var order []string
		var toys []*finisher
		var rules []core.Imposed
		for i := range n {
			l := &finisher{toy: toy{order: &order, name: fmt.Sprintf("%02d", i)}}
			toys = append(toys, l)
			rules = append(rules, imposed(rule.PhaseAccess, rule.Denied, toyConfig{Name: l.name, Shadow: i%3 == 2}, l))
		}
		e.Impose("r", rules...)
		require.Equal(t, 3, enter(e, "r", 3))
		assert.Len(t, order, 3*n)
		for _, l := range toys {
			assert.Empty(t, l.out)
			assert.Len(t, l.exits, 3)
		}
		toys[n-2].decide = always(rule.Block)
		require.Equal(t, n%3 == 1, enter(e, "r", 1) == 1, "unless it is a shadow")
	}
}

func TestRulesAreAskedInTheOrderOfPhases(t *testing.T) {
	e, c := newEngine(t)
	var asked []string
	named := func(phase rule.Phase, config toyConfig) core.Imposed {
		return imposed(phase, rule.Denied, config, &toy{decide: func(rule.Call) rule.Decision {
			asked = append(asked, config.Name)
			return rule.Pass
		}})
	}
	e.Impose("r",
		imposedFlow(flow.Rule{Limit: 1}, c.Now()),
		named(rule.PhaseRate, toyConfig{Name: "rate"}),
		named(rule.PhaseHealth, toyConfig{Name: "z"}),
		named(rule.PhaseHealth, toyConfig{Name: "shared", Match: "*", Shared: true}),
		named(rule.PhaseHealth, toyConfig{Name: "a"}),
		named(rule.PhaseHealth, toyConfig{Name: "of one", Origin: "me"}),
		named(rule.PhaseAccess, toyConfig{Name: "access"}),
		named(rule.PhaseAccess, toyConfig{Name: "shadow", Shadow: true}),
	)
	assert.Equal(t, 1, enter(e, "r", 1, core.Origin("me")))
	assert.Equal(t, []string{"access", "of one", "a", "z", "shared", "rate", "shadow"}, asked)
}

func TestStepsLearnWhatTheOptionsSay(t *testing.T) {
	e, c := newEngine(t)
	user := &toy{}
	plain := &toy{}
	e.Impose("r", imposed(rule.PhaseAccess, rule.Denied, toyConfig{Name: "1", Attributes: "user"}, user), toyRule("2", plain))
	enter(e, "r", 1, core.String("user", "a"), core.String("tenant", "t"), core.Int("user", 7), core.Tokens(3),
		core.Priority(rule.PriorityLow), core.Inbound())
	enter(e, "r", 1, core.Int("user", 7), core.String("user", "b"), core.Priority(100))
	enter(e, "r", 1, core.String("tenant", "t"))
	call := func(tokens int32, p rule.Priority, inbound bool, a rule.Attribute) rule.Call {
		of := rule.Call{Now: c.Now(), Tokens: tokens, Attribute: a}
		of.SetCaller(p, inbound)
		return of
	}
	assert.Equal(t, fmt.Sprintf("%#v", []rule.Call{
		call(3, rule.PriorityLow, true, rule.Int(7)),
		call(1, rule.PriorityCritical, false, rule.String("b")),
		{Now: c.Now(), Tokens: 1},
	}), fmt.Sprintf("%#v", user.calls))
	assert.Equal(t, rule.PriorityLow, user.calls[0].Priority())
	assert.True(t, user.calls[0].Inbound())
	assert.Equal(t, call(3, rule.PriorityLow, true, rule.Attribute{}), plain.calls[0], "without an attribute")
}

func TestRetryAfterIsTheLongestOfAllRules(t *testing.T) {
	e, c := newEngine(t)
	short := &toy{decide: always(rule.Block), retry: time.Second}
	long := &toy{decide: always(rule.Block), retry: time.Minute}
	window := imposedFlow(flow.Rule{Limit: 1, Window: time.Hour}, c.Now())
	retryAfter := func(rules ...core.Imposed) time.Duration {
		e.Impose("r", rules...)
		_, err := e.Entry(t.Context(), "r")
		return blockOf(t, err).RetryAfter
	}
	assert.Equal(t, time.Second, retryAfter(toyRule("1", short)))
	assert.Equal(t, time.Minute, retryAfter(toyRule("1", short), toyRule("2", long)))
	e.Impose("r", window)
	require.Equal(t, 1, enter(e, "r", 1))
	alone := retryAfter(window)
	assert.Greater(t, alone, time.Minute)
	assert.Equal(t, alone, retryAfter(toyRule("1", short), window))
	short.decide = nil
	assert.Equal(t, alone, retryAfter(toyRule("1", short), window))
	denied := imposed(rule.PhaseAccess, rule.Denied, toyConfig{Name: "0"}, long)
	assert.Zero(t, retryAfter(denied, toyRule("1", short), window), "who is denied need not come again")
}

func TestACallWaitsInTheQueueOfAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet})
		defer e.Close()
		pool := &places{limit: 1, maxWait: time.Second}
		before, after := &finisher{}, &finisher{}
		e.Impose("r",
			imposed(rule.PhaseHealth, rule.Unavailable, toyConfig{Name: "before"}, before),
			imposed(rule.PhaseConcurrency, rule.Overloaded, toyConfig{Name: "pool"}, pool),
			imposed(rule.PhaseRate, rule.RateLimited, toyConfig{Name: "after"}, after))
		guard, err := e.Entry(t.Context(), "r")
		require.NoError(t, err)
		go func() {
			time.Sleep(300 * time.Millisecond)
			assert.Equal(t, 1, before.held(), "while a call waits it has no other ticket")
			guard.Exit()
		}()
		start := time.Now()
		second, err := e.Entry(t.Context(), "r")
		require.NoError(t, err)
		assert.Equal(t, 300*time.Millisecond, time.Since(start))

		_, err = e.Entry(t.Context(), "r")
		assert.Equal(t, core.BlockError{
			Resource: "r", Kind: "toy", Rule: "pool", Reason: rule.Overloaded, RetryAfter: 7 * time.Second,
		}, blockOf(t, err))
		assert.Equal(t, 1300*time.Millisecond, time.Since(start), "it has waited for maxWait")
		second.Exit()
		assert.Empty(t, before.out)
		assert.Empty(t, after.out)
		assert.Zero(t, pool.taken)
		assert.Empty(t, pool.waiting)
		s := e.Resource("r").Snapshot()
		assert.EqualValues(t, 2, s.Waited)
		assert.Zero(t, s.Waiting)
		assert.Zero(t, s.InFlight)
	})
}

// What lets a call pass has to do so at the instant of passing, not before the wait.
func TestACallThatHasWaitedHasToPassAllRulesAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet})
		defer e.Close()
		pool := &places{limit: 1, maxWait: time.Minute}
		breaker := &toy{}
		e.Impose("r", imposed(rule.PhaseHealth, rule.Unavailable, toyConfig{Name: "breaker"}, breaker),
			imposed(rule.PhaseConcurrency, rule.Overloaded, toyConfig{Name: "pool"}, pool))
		guard, err := e.Entry(t.Context(), "r")
		require.NoError(t, err)
		go func() {
			time.Sleep(time.Second)
			breaker.become(always(rule.Block))
			guard.Exit()
		}()
		_, err = e.Entry(t.Context(), "r")
		assert.Equal(t, "breaker", blockOf(t, err).Rule)
		assert.Zero(t, pool.taken, "its place is free again")
	})
}

// A call that waits for a throttle keeps its place in the pool before it.
func TestPlaceIsKeptWhileACallWaitsForALaterRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet})
		defer e.Close()
		pool := &places{limit: 2, maxWait: time.Minute}
		other := &finisher{}
		e.Impose("r",
			imposed(rule.PhaseHealth, rule.Unavailable, toyConfig{Name: "other"}, other),
			imposed(rule.PhaseConcurrency, rule.Overloaded, toyConfig{Name: "pool"}, pool),
			imposedFlow(throttle("r", 1, time.Minute), e.Clock().Now()))
		start := time.Now()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				guard, err := e.Entry(t.Context(), "r")
				if assert.NoError(t, err) {
					guard.Exit()
				}
			})
		}
		synctest.Wait()
		assert.Equal(t, 2, pool.taken, "of those that wait for the throttle")
		assert.Len(t, pool.waiting, 2)
		assert.Zero(t, other.held())
		wg.Wait()
		assert.Equal(t, 4*time.Second, time.Since(start))
		assert.Equal(t, 2, pool.most)
		assert.Zero(t, pool.taken)
		assert.LessOrEqual(t, pool.joined, 4, "nobody joins twice")
		assert.Empty(t, other.out)
		assert.EqualValues(t, 4, e.Resource("r").Snapshot().Waited)
	})
}

func TestWaitForAStepEndsWithTheContextAndTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet})
		pool := &places{limit: 1, maxWait: time.Hour}
		e.Impose("r", toyRule("pool", pool))
		guard, err := e.Entry(t.Context(), "r")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 2)
		go func() {
			_, err := e.Entry(ctx, "r")
			errs <- err
		}()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-errs, context.Canceled)
		assert.Empty(t, pool.waiting)
		_, err = e.Entry(ctx, "r")
		require.ErrorIs(t, err, context.Canceled, "it does not even join")
		go func() {
			_, err := e.Entry(t.Context(), "r")
			errs <- err
		}()
		synctest.Wait()
		e.Close()
		require.ErrorIs(t, <-errs, core.ErrClosed)
		assert.Empty(t, pool.waiting)
		assert.Equal(t, 1, pool.taken)
		guard.Exit()
		assert.Zero(t, pool.taken)
	})
}

// A place that an earlier version of a rule granted is given back; the present version
// is asked anew.
func TestRulesThatChangeWhileACallWaitsAreAskedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet})
		defer e.Close()
		before, after := &places{limit: 1, maxWait: time.Hour}, &places{limit: 1, maxWait: time.Hour}
		slow := imposedFlow(throttle("r", 1, time.Hour), e.Clock().Now())
		e.Impose("r", toyRule("pool", before), slow)
		guard, err := e.Entry(t.Context(), "r")
		require.NoError(t, err)
		guard.Exit()
		done := make(chan error)
		go func() { // waits for the throttle with a place of the pool
			guard, err := e.Entry(t.Context(), "r")
			guard.Exit()
			done <- err
		}()
		synctest.Wait()
		require.Equal(t, 1, before.taken)
		go func() { // waits for the pool
			guard, err := e.Entry(t.Context(), "r")
			guard.Exit()
			done <- err
		}()
		synctest.Wait()
		require.Len(t, before.waiting, 1)
		e.Impose("r", toyRule("pool", after), slow)
		before.retire()
		require.NoError(t, <-done)
		require.NoError(t, <-done)
		assert.Zero(t, before.taken)
		assert.Zero(t, after.taken)
		assert.Equal(t, 1, after.most)
	})
}

func TestCallsThatWaitInSeveralQueuesPassWhenTheRulesGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet})
		defer e.Close()
		first, second := throttle("r", 0.01, time.Hour), throttle("r", 0.02, time.Hour)
		first.Name, second.Name = "first", "second"
		for _, left := range [][]flow.Rule{nil, {{Resource: "r", Limit: 100}}, {second}} {
			load(t, e, first, second)
			require.Equal(t, 1, enter(e, "r", 1))
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() { assert.Equal(t, 1, enter(e, "r", 1)) })
			}
			synctest.Wait()
			assert.EqualValues(t, 3, e.Resource("r").Snapshot().Waiting)
			load(t, e, left...)
			wg.Wait()
			assert.Zero(t, e.Resource("r").Snapshot().Waiting)
			time.Sleep(time.Hour)
		}
	})
}

func TestNoWaitRefusesInsteadOfWaiting(t *testing.T) {
	e, c := newEngine(t)
	pool := &places{limit: 1, maxWait: time.Hour}
	e.Impose("r", toyRule("pool", pool))
	guard, err := e.Entry(t.Context(), "r", core.NoWait())
	require.NoError(t, err)
	_, err = e.Entry(t.Context(), "r", core.NoWait())
	assert.Equal(t, 7*time.Second, blockOf(t, err).RetryAfter)
	assert.Zero(t, pool.joined)
	guard.Exit()

	for name, rules := range map[string][]core.Imposed{
		"one queue":      {imposedFlow(throttle("r", 0.5, time.Hour), c.Now())},
		"two queues":     {imposedFlow(throttle("r", 0.5, time.Hour), c.Now()), imposedFlow(flow.Rule{Name: "2", Limit: 9, Algorithm: flow.Throttle}, c.Now())},
		"queue, window":  {imposedFlow(throttle("r", 0.5, time.Hour), c.Now()), imposedFlow(flow.Rule{Name: "2", Limit: 9}, c.Now())},
		"step and queue": {toyRule("pool", pool), imposedFlow(throttle("r", 0.5, time.Hour), c.Now())},
		"bucket":         {imposedFlow(flow.Rule{Limit: 0.5, Algorithm: flow.TokenBucket, MaxWait: time.Hour}, c.Now())},
	} {
		e.Impose("r", rules...)
		assert.Equal(t, 1, enter(e, "r", 1, core.NoWait()), name)
		_, err = e.Entry(t.Context(), "r", core.NoWait())
		assert.Equal(t, 2*time.Second, blockOf(t, err).RetryAfter, name)
	}
}

// However calls settle, what they cost is what counts.
func TestWhatCallsSettleToIsWhatCounts(t *testing.T) {
	e, c := newEngine(t)
	l := &finisher{}
	e.Impose("r", toyRule("l", l), imposedFlow(flow.Rule{Limit: 100, Window: time.Minute}, c.Now()),
		imposedFlow(flow.Rule{Name: "bucket", Limit: 100, Window: time.Minute, Algorithm: flow.TokenBucket}, c.Now()))
	guard, err := e.Entry(t.Context(), "r", core.Tokens(10))
	require.NoError(t, err)
	remaining := func() []int64 {
		var left []int64
		for _, of := range e.FlowStates("r") {
			left = append(left, of.Quota.Remaining)
		}
		return left
	}
	require.Equal(t, []int64{90, 90}, remaining())
	for _, cost := range []int{40, 25, 25, 90, -3, 60} {
		guard.Settle(cost)
		left := int64(100 - max(0, cost))
		require.Equal(t, []int64{left, left}, remaining(), "%d", cost)
	}
	assert.Equal(t, 50, l.settled)
	assert.Equal(t, 40, enter(e, "r", 50), "and no more than that")
	guard.Settle(200)
	assert.Equal(t, []int64{0, 0}, remaining())
	guard.Exit()
	guard.Settle(0)
	assert.Equal(t, []int64{0, 0}, remaining(), "after the exit it stays")
	assert.Equal(t, 190, l.settled)

	free, err := e.Entry(t.Context(), "no rule")
	require.NoError(t, err)
	free.Settle(10)
	free.Exit()
	var none core.Guard
	none.Settle(10)
}

func TestSettledTokensCountUnderAnyNumberOfGoroutines(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Resource: "r", Limit: 10_000, Window: time.Hour})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for k := range 50 {
				guard, err := e.Entry(t.Context(), "r", core.Tokens(5))
				if !assert.NoError(t, err) {
					return
				}
				guard.Settle(1 + (i+k)%19) // 800 calls, 1 to 19 tokens each
				guard.Settle(7)
				guard.Exit()
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, 10_000-16*50*7, e.Resource("r").Snapshot().Rules[0].Quota.Remaining)
}

func TestConfigSaysWhatAFailureIs(t *testing.T) {
	broken := errors.New("broken")
	refusal := fmt.Errorf("further down: %w", &core.BlockError{})
	fails := func(e *core.Engine, err error) bool {
		guard, _ := e.Entry(context.Background(), "fail")
		guard.Fail(err)
		guard.Exit()
		_ = e.Do(context.Background(), "do", func(context.Context) error { return err })
		byFail, byDo := e.Resource("fail").Snapshot().Failed, e.Resource("do").Snapshot().Failed
		assert.Equal(t, byFail, byDo)
		return byFail > 0
	}
	for err, want := range map[error]bool{
		broken: true, context.DeadlineExceeded: true, context.Canceled: false,
		refusal: false, core.ErrClosed: true,
	} {
		e, _ := newEngine(t)
		assert.Equal(t, want, fails(e, err), "%v", err)
		own := core.New(core.Config{Logger: quiet, IsFailure: func(of error) bool { return !errors.Is(of, broken) }})
		assert.Equal(t, !errors.Is(err, broken), fails(own, err), "%v", err)
		own.Close()
	}
	never := core.New(core.Config{Logger: quiet, IsFailure: func(error) bool { return false }})
	defer never.Close()
	require.Panics(t, func() {
		_ = never.Do(t.Context(), "r", func(context.Context) error { panic("oops") })
	})
	assert.EqualValues(t, 1, never.Resource("r").Snapshot().Failed, "a panic is one, always")
}

// silent is a limiter whose status lacks what its kind announces.
type silent struct{ pass }

func (silent) Status(clock.Instant) rule.Status { return rule.Status{} }

func (silent) RetryAfter(rule.Call) time.Duration { return 0 }

func TestGaugesThatALimiterLeavesOutAreNotShown(t *testing.T) {
	e, _ := newEngine(t)
	common := func(c *toyConfig) rule.Common {
		return rule.Common{
			Name: &c.Name, Resource: &c.Resource, Match: &c.Match, Shared: &c.Shared, Origin: &c.Origin, Shadow: &c.Shadow,
		}
	}
	kind := rule.Define(rule.Spec[toyConfig]{
		Kind: "toy", Common: common, Gauges: []rule.Gauge{{Name: "a"}, {Name: "b"}},
		New: func(*toyConfig, rule.Env) rule.Limiter { return silent{} },
	})
	e.Impose("r", core.Imposed{Rule: kind.Of(toyConfig{Resource: "r"}), Limiter: silent{}})
	gauges := e.Explain("r")[0].Gauges
	assert.Len(t, gauges, 2)
	assert.True(t, math.IsNaN(gauges[0]) && math.IsNaN(gauges[1]))
}
