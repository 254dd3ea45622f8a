package outgoing_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

const workers = 16

func TestRetriesStayWithinTheBudgetUnderConcurrency(t *testing.T) {
	t.Parallel()
	const calls, ratio, perSecond, burst = 2000, 0.1, 5, 10
	b, virtual := newBudget(t, outgoing.RetryOptions{Ratio: ratio, MinPerSecond: perSecond, Burst: burst})
	var retries atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := range calls {
				b.Call()
				for range 3 {
					if b.Allow() {
						retries.Add(1)
					}
				}
				if i%100 == 0 {
					virtual.Advance(time.Second / 100)
				}
			}
		})
	}
	all.Wait()
	seconds := float64(virtual.Now()) / float64(time.Second)
	most := burst + perSecond*seconds + ratio*calls*workers
	assert.LessOrEqual(t, float64(retries.Load()), most)
	assert.GreaterOrEqual(t, float64(retries.Load()), most-burst-1, "none is lost while all are asked for")
	assert.EqualValues(t, retries.Load(), b.Stats().Retries)
}

// TestRetriesStayWithinTheBudgetWhileTargetsComeAndGo asks for more targets than there are
// places, so that budgets are forgotten while they are used.
func TestRetriesStayWithinTheBudgetWhileTargetsComeAndGo(t *testing.T) {
	t.Parallel()
	const targets, burst, rounds = 6, 3, 1000
	virtual := clock.NewVirtual(time.Time{})
	budgets, err := outgoing.NewRetryBudgets(outgoing.RetryOptions{
		Burst: burst, MaxTargets: 3, Ratio: 0.5, MinPerSecond: -1, Clock: virtual,
	})
	require.NoError(t, err)
	var calls, retries atomic.Int64
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range rounds {
				b := budgets.Target(fmt.Sprint((i/10 + w) % targets))
				b.Call()
				calls.Add(1)
				for b.Allow() {
					retries.Add(1)
				}
				virtual.Advance(10 * time.Millisecond)
			}
		})
	}
	all.Wait()
	// A budget is forgotten only when it is full, and the next starts full: nothing is gained.
	assert.LessOrEqual(t, float64(retries.Load()), float64(targets+1)*burst+0.5*float64(calls.Load()))
}

func TestEveryCallIsCountedOnceUnderConcurrency(t *testing.T) {
	t.Parallel()
	const calls = 3000
	c := newClient(t, outgoing.ThrottleOptions{Window: time.Second})
	var sent, taken, refused, paused atomic.Int64
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range calls {
				call, err := outgoing.Begin(t.Context(), c.throttle, nil, host, rule.Priority(w%5-2))
				switch {
				case err == nil:
					sent.Add(1)
					a := rejected()
					if i%4 == 0 {
						a = accepted()
						taken.Add(1)
					}
					if i%1000 == 999 {
						a.RetryAfter = time.Millisecond
					}
					call.End(a)
				case assert.ObjectsAreEqual(outgoing.ErrPaused, err.(*outgoing.Error).Cause): //nolint:errorlint // it is one
					paused.Add(1)
				default:
					refused.Add(1)
				}
				if i%7 == 0 {
					c.clock.Advance(time.Millisecond)
				}
			}
		})
	}
	all.Wait()
	stats := c.stats()
	assert.EqualValues(t, workers*calls, sent.Load()+refused.Load()+paused.Load())
	assert.EqualValues(t, taken.Load(), stats.Accepted)
	assert.EqualValues(t, sent.Load()-taken.Load(), stats.Rejected)
	assert.EqualValues(t, refused.Load(), stats.Throttled)
	assert.EqualValues(t, paused.Load(), stats.Paused)
}

// TestNoCallIsSentDuringAPauseUnderConcurrency counts calls that begin after a pause has
// begun and before it ends.
func TestNoCallIsSentDuringAPauseUnderConcurrency(t *testing.T) {
	t.Parallel()
	c := newClient(t, outgoing.ThrottleOptions{})
	require.NoError(t, c.call(comeBackAfter(10*time.Second)))
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range 1000 {
				_, err := outgoing.Begin(t.Context(), c.throttle, nil, host, rule.PriorityNormal)
				assert.ErrorIs(t, err, outgoing.ErrPaused)
				if c.clock.Now().Time().Before(time.Unix(1_700_000_009, 0)) {
					c.clock.Advance(50 * time.Microsecond)
				}
			}
		})
	}
	all.Wait()
}

func TestTargetsStayBoundedUnderConcurrency(t *testing.T) {
	t.Parallel()
	c := newClient(t, outgoing.ThrottleOptions{MaxTargets: 10, Window: time.Second})
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range 300 {
				call, err := outgoing.Begin(t.Context(), c.throttle, nil, fmt.Sprint(w, i%100), rule.PriorityNormal)
				if assert.NoError(t, err) {
					call.End(accepted())
				}
				c.clock.Advance(time.Millisecond)
				assert.LessOrEqual(t, len(c.throttle.Stats().Targets), 10)
			}
		})
	}
	all.Wait()
}
