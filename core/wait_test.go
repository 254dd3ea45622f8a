package core_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// inBubble runs a test on the system's clock, in a bubble in which time passes
// only while everybody waits.
func inBubble(t *testing.T, test func(t *testing.T, e *core.Engine), flowRules ...flow.Rule) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet})
		defer e.Close()
		load(t, e, flowRules...)
		test(t, e)
	})
}

func throttle(resource string, limit float64, maxWait time.Duration) flow.Rule {
	return flow.Rule{Resource: resource, Limit: limit, Algorithm: flow.Throttle, MaxWait: maxWait}
}

// comeInOrder makes a call of "r" for each place in passed, all at one time and
// one after the other, and notes there how long after that they pass.
func comeInOrder(t *testing.T, e *core.Engine, passed []time.Duration) *sync.WaitGroup {
	t.Helper()
	start := time.Now()
	callers := new(sync.WaitGroup)
	for i := range passed {
		callers.Go(func() {
			guard, err := e.Entry(t.Context(), "r")
			passed[i] = time.Since(start)
			assert.NoError(t, err)
			guard.Exit()
		})
		synctest.Wait()
	}
	return callers
}

func TestThrottleSpacesCallsExactly(t *testing.T) {
	for _, limit := range []float64{0.5, 3, 100, 1000, 5000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			inBubble(t, func(t *testing.T, e *core.Engine) {
				passed := make([]time.Duration, 50)
				comeInOrder(t, e, passed).Wait()
				for i, at := range passed {
					passAt := time.Duration(float64(i) * float64(time.Second) / limit)
					assert.InDelta(t, passAt, at, 50, "caller %d of %v per second", i, limit)
				}
			}, throttle("r", limit, 200*time.Second))
		})
	}
}

func TestACallIsRefusedRatherThanWaitBeyondMaxWait(t *testing.T) {
	inBubble(t, func(t *testing.T, e *core.Engine) {
		var wg sync.WaitGroup
		start := time.Now()
		for i := range 20 {
			wg.Go(func() {
				guard, err := e.Entry(t.Context(), "r")
				if i > 5 {
					var blocked *core.BlockError
					assert.ErrorAs(t, err, &blocked)
					assert.Equal(t, 100*time.Millisecond, blocked.RetryAfter)
					assert.Equal(t, start, time.Now(), "at once")
					return
				}
				assert.NoError(t, err)
				assert.LessOrEqual(t, time.Since(start), 500*time.Millisecond)
				guard.Exit()
			})
			synctest.Wait()
		}
		wg.Wait()
		s := e.Resource("r").Snapshot()
		assert.EqualValues(t, 6, s.Passed)
		assert.EqualValues(t, 14, s.Blocked)
		assert.EqualValues(t, 5, s.Waited)
		assert.EqualValues(t, 0, s.Waiting)
		assert.Equal(t, 1500*time.Millisecond, s.WaitTime, "100 + 200 + 300 + 400 + 500 ms")
		assert.Zero(t, s.ResponseTime, "waiting is not response time")
	}, throttle("r", 10, 500*time.Millisecond))
}

func TestAWaitHonoursItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, e *core.Engine) {
		require.Equal(t, 1, enter(e, "r", 1))
		start := time.Now()

		short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := e.Entry(short, "r")
		require.ErrorIs(t, err, core.ErrBlocked, "it would pass in a second")
		assert.Equal(t, start, time.Now(), "at once")

		long, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		_, err = e.Entry(long, "r")
		require.NoError(t, err)
		assert.Equal(t, time.Second, time.Since(start))

		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = e.Entry(cancelled, "r")
		require.ErrorIs(t, err, context.Canceled)
		assert.EqualValues(t, 1, e.Resource("r").Snapshot().Blocked)
	}, throttle("r", 1, time.Minute))
}

func TestACancelledWaitLosesNoPass(t *testing.T) {
	inBubble(t, func(t *testing.T, e *core.Engine) {
		const callers = 10
		start := time.Now()
		var wg sync.WaitGroup
		cancels := make([]context.CancelFunc, callers)
		passed := make([]time.Duration, callers)
		for i := range callers {
			ctx, cancel := context.WithCancel(t.Context())
			cancels[i] = cancel
			wg.Go(func() {
				if _, err := e.Entry(ctx, "r"); err == nil {
					passed[i] = time.Since(start)
				} else {
					assert.ErrorIs(t, err, context.Canceled)
				}
			})
			synctest.Wait()
		}
		for _, i := range []int{1, 4, 5, 9} { // the head, two in the middle, the last
			cancels[i]()
		}
		wg.Wait()
		assert.Equal(t, []time.Duration{
			0, 0, time.Second, 2 * time.Second, 0, 0, 3 * time.Second, 4 * time.Second, 5 * time.Second, 0,
		}, passed)
		for _, cancel := range cancels {
			cancel()
		}
		assert.EqualValues(t, 6, e.Resource("r").Snapshot().InFlight)
	}, throttle("r", 1, time.Minute))
}

func TestCloseWakesWaiters(t *testing.T) {
	inBubble(t, func(t *testing.T, e *core.Engine) {
		require.Equal(t, 1, enter(e, "r", 1))
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				_, err := e.Entry(t.Context(), "r")
				assert.ErrorIs(t, err, core.ErrClosed)
			})
		}
		synctest.Wait()
		assert.EqualValues(t, 5, e.Resource("r").Snapshot().Waiting)
		e.Close()
		wg.Wait()
		assert.EqualValues(t, 0, e.Resource("r").Snapshot().Waiting)
	}, throttle("r", 1, time.Minute))
}

// A limit must hold when calls really pass, which is after their wait.
func TestAWaitComesBeforeTheWindowIsCounted(t *testing.T) {
	reject := flow.Rule{Name: "reject", Resource: "r", Limit: 10, Buckets: 10}
	inBubble(t, func(t *testing.T, e *core.Engine) {
		seconds := make(map[int64]int)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 400 { // 40 a second for 10 s, throttled to 20 a second
			wg.Go(func() {
				if guard, err := e.Entry(t.Context(), "r"); err == nil {
					mu.Lock()
					seconds[time.Now().Unix()]++
					mu.Unlock()
					guard.Exit()
				}
			})
			time.Sleep(25 * time.Millisecond)
		}
		wg.Wait()
		total := 0
		for second, passed := range seconds {
			assert.LessOrEqual(t, passed, 10, "second %d", second)
			total += passed
		}
		assert.GreaterOrEqual(t, total, 100)
	}, throttle("r", 20, 2*time.Second), reject)
}

func TestAReservationThatAnotherRuleRefusesIsGivenBack(t *testing.T) {
	inBubble(t, func(t *testing.T, e *core.Engine) {
		for range 100 {
			require.Equal(t, 0, enter(e, "r", 1))
		}
		load(t, e, throttle("r", 1, 0))
		assert.Equal(t, 1, enter(e, "r", 2), "the queue has seen none of them")
	}, throttle("r", 1, 0), flow.Rule{Name: "closed", Resource: "r", Limit: 0})
}

func TestACallThatIsRefusedAnywayDoesNotWait(t *testing.T) {
	inBubble(t, func(t *testing.T, e *core.Engine) {
		start := time.Now()
		_, err := e.Entry(t.Context(), "r")
		require.ErrorIs(t, err, core.ErrBlocked)
		assert.Zero(t, time.Since(start), "it need not wait to be refused")
		assert.EqualValues(t, 1, e.Resource("r").Snapshot().Blocked)
	}, throttle("r", 1, time.Minute), flow.Rule{Name: "closed", Resource: "r", Limit: 0})
}

func TestCallOfMoreTokensThanAWindowAllowsDoesNotWaitBehindOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, e *core.Engine) {
		waits := make([]time.Duration, 2)
		callers := comeInOrder(t, e, waits) // the second one waits, and its token is promised to it
		start := time.Now()
		_, err := e.Entry(t.Context(), "r", core.Tokens(4))
		var block *core.BlockError
		require.ErrorAs(t, err, &block)
		assert.Equal(t, "narrow", block.Rule)
		assert.Zero(t, time.Since(start), "the window never lets it pass")
		callers.Wait()
		assert.Equal(t, []time.Duration{0, time.Second}, waits)
	}, throttle("r", 1, time.Minute), flow.Rule{Name: "narrow", Resource: "r", Limit: 3, Window: 100 * time.Millisecond})
}

func TestARemovedRuleReleasesItsWaiters(t *testing.T) {
	inBubble(t, func(t *testing.T, e *core.Engine) {
		require.Equal(t, 1, enter(e, "r", 1))
		start := time.Now()
		var wg sync.WaitGroup
		var refused, passed int
		var mu sync.Mutex
		for range 10 {
			wg.Go(func() {
				_, err := e.Entry(t.Context(), "r")
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					passed++
				} else {
					assert.ErrorIs(t, err, core.ErrBlocked)
					refused++
				}
			})
		}
		synctest.Wait()
		load(t, e, flow.Rule{Resource: "r", Limit: 4})
		wg.Wait()
		assert.Equal(t, start, time.Now(), "at once")
		assert.Equal(t, 3, passed, "as the rule demands that is there now, which counts the one before")
		assert.Equal(t, 7, refused)
	}, throttle("r", 1, time.Minute))
}

func TestWaitersFollowAChangedLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, e *core.Engine) {
		passed := make([]time.Duration, 5)
		callers := comeInOrder(t, e, passed)
		time.Sleep(1500 * time.Millisecond) // two have passed
		load(t, e, throttle("r", 10, time.Minute))
		callers.Wait()
		assert.Equal(t, []time.Duration{
			0, time.Second, 1500 * time.Millisecond, 1600 * time.Millisecond, 1700 * time.Millisecond,
		}, passed, "the time of the one after the second has come long since")
	}, throttle("r", 1, time.Minute))
}

func TestWaitersOfAnUnchangedRuleKeepTheirPlaceOverReloads(t *testing.T) {
	inBubble(t, func(t *testing.T, e *core.Engine) {
		passed := make([]time.Duration, 5)
		callers := comeInOrder(t, e, passed)
		for i := range 40 { // another rule of the resource changes all the time
			load(t, e, throttle("r", 1, time.Minute), flow.Rule{Name: "other", Resource: "r", Limit: float64(1000 + i)})
			time.Sleep(100 * time.Millisecond)
		}
		callers.Wait()
		assert.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second}, passed)
	}, throttle("r", 1, time.Minute))
}

func TestTwoQueuesAreWaitedInOneAfterTheOther(t *testing.T) {
	slow := throttle("r", 1, time.Minute)
	slow.Name = "slow"
	inBubble(t, func(t *testing.T, e *core.Engine) {
		start := time.Now()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				_, err := e.Entry(t.Context(), "r")
				assert.NoError(t, err)
			})
		}
		wg.Wait()
		assert.Equal(t, 4*time.Second, time.Since(start))
	}, throttle("r", 10, time.Minute), slow)
}

func TestThrottleWarmsUp(t *testing.T) {
	rule := throttle("r", 2, time.Minute)
	rule.WarmUp = flow.WarmUp{Period: 10 * time.Second, ColdFactor: 3}
	inBubble(t, func(t *testing.T, e *core.Engine) {
		start := time.Now()
		var gaps []time.Duration
		for last := start; len(gaps) < 40; {
			_, err := e.Entry(t.Context(), "r")
			require.NoError(t, err)
			gaps = append(gaps, time.Since(last))
			last = time.Now()
		}
		assert.InDelta(t, 1500*time.Millisecond, gaps[1], 10, "cold: a third of the limit")
		assert.InDelta(t, 500*time.Millisecond, gaps[39], 10, "warm")
	}, rule)
}
