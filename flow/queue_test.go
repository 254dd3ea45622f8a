package flow_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

func TestQueueSpacesPassesEvenly(t *testing.T) {
	t.Parallel()
	for _, limit := range []float64{0.1, 0.5, 1, 2.5, 3, 7, 100, 333.3, 1000, 5000, 123_456.7, 700_000, 123_456_789} {
		const calls = 2000
		l := newTestQueue(t, throttle(limit, flow.MaxMaxWait))
		l.call(calls)
		l.moveTo(seconds(calls / limit))
		require.Len(t, l.passes, calls, "limit %v", limit)
		for k, p := range l.passes {
			// Rounded up to the nanosecond, which does not add up.
			require.InDelta(t, float64(k)*1e9/limit, float64(p.at), 1.001, "limit %v, pass %d", limit, k)
		}
		assert.IsIncreasing(t, l.ids(), "limit %v: first come, first served", limit)
	}
}

func TestQueueKeepsItsRateUnderOverload(t *testing.T) {
	t.Parallel()
	for _, limit := range []float64{0.5, 3, 33.4, 100, 1000, 5000} {
		l := newTestQueue(t, throttle(limit, time.Second))
		const span = 4
		for k := range int(3*span*max(1, limit)) + 1 {
			l.moveTo(seconds(float64(k) / (3 * max(1, limit))))
			l.arrive(1)
		}
		assert.InDelta(t, limit*span, len(l.passes), 1+limit*span/100, "limit %v", limit)
		assert.IsIncreasing(t, l.ids(), "limit %v", limit)
	}
}

func TestQueueOfOtherWindows(t *testing.T) {
	t.Parallel()
	for window, spacing := range map[time.Duration]time.Duration{
		10 * time.Millisecond: time.Millisecond, time.Minute: 6 * time.Second, 24 * time.Hour: 144 * time.Minute,
	} {
		rule := throttle(10, flow.MaxMaxWait)
		rule.Window = window
		l := newTestQueue(t, rule)
		l.call(10)
		l.moveTo(window)
		assert.Equal(t, every(spacing, 10), l.times(), "window %v", window)
	}
}

func TestQueueLetsNoCallPassBeforeItsArrival(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, throttle(1, time.Second))
	for _, at := range []float64{0, 0.2, 5, 5.9, 6.5, 100} {
		l.moveTo(seconds(at))
		l.arrive(1)
	}
	l.moveTo(200 * time.Second)
	assert.Equal(t, []time.Duration{
		0, time.Second, 5 * time.Second, 6 * time.Second, 7 * time.Second, 100 * time.Second,
	}, l.times(), "an idle queue saves nothing up")
}

func TestQueueRefusesWhatWouldWaitTooLong(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, throttle(10, 250*time.Millisecond))
	want := []rule.Decision{rule.Pass, rule.Wait, rule.Wait, rule.Block, rule.Block}
	for i, decision := range want {
		assert.Equal(t, decision, l.arrive(1), "call %d", i)
	}
	l.moveTo(50 * time.Millisecond)
	assert.Equal(t, rule.Wait, l.arrive(1), "exactly as long as it may")
	assert.Equal(t, rule.Block, l.arrive(1))
	l.moveTo(time.Second)
	assert.Equal(t, every(100*time.Millisecond, 4), l.times(), "the refused left no gap")
}

func TestQueueWithoutPatience(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, throttle(10, 0))
	assert.Equal(t, rule.Pass, l.arrive(1))
	assert.Equal(t, rule.Block, l.arrive(1), "nobody waits by default")
	l.moveTo(100*time.Millisecond - 1)
	assert.Equal(t, rule.Block, l.arrive(1))
	l.moveTo(100 * time.Millisecond)
	assert.Equal(t, rule.Pass, l.arrive(1))

	patient := newTestQueue(t, throttle(10, time.Second))
	assert.Equal(t, rule.Pass, patient.arriveFor(1, -time.Second), "a call that need not wait may have none")
	assert.Equal(t, rule.Block, patient.arriveFor(1, 99*time.Millisecond))
	assert.Equal(t, rule.Wait, patient.arriveFor(1, 100*time.Millisecond))
	assert.Equal(t, rule.Block, patient.arriveFor(1, -time.Second))
}

func TestQueueTakeDoesNotWait(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, throttle(10, 150*time.Millisecond))
	take := func() rule.Decision {
		_, decision := l.queue.Take(l.compiled, l.now, 1)
		return decision
	}
	assert.Equal(t, rule.Pass, take())
	assert.Equal(t, rule.Wait, take(), "it would have to join")
	assert.Equal(t, rule.Wait, take(), "and has not")
	assert.Equal(t, rule.Wait, l.arrive(1))
	assert.Equal(t, rule.Block, take())
	assert.NoError(t, l.queue.CheckWaiters(1))
}

func TestQueueOfLimitZero(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, throttle(0, time.Hour))
	assert.Equal(t, rule.Block, l.arrive(1))
	assert.Equal(t, rule.Never, l.queue.RetryAfter(l.now, 1, time.Hour))
	limit, remaining, reset := l.queue.Status(l.now)
	assert.Equal(t, []any{0.0, int64(0), time.Duration(0)}, []any{limit, remaining, reset})
}

func TestQueueOfTheLargestLimit(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, throttle(flow.MaxLimit, time.Second))
	l.call(100)
	l.moveTo(time.Microsecond)
	assert.Equal(t, every(time.Nanosecond, 100), l.times())
	l.arrive(math.MaxInt32)
	assert.Len(t, l.passes, 100, "too many at once")
}

func TestQueueWeighsTokens(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, throttle(10, time.Minute))
	for _, n := range []int32{5, 1, 3, 1} {
		l.arrive(n)
	}
	l.moveTo(time.Minute)
	assert.Equal(t, []time.Duration{
		0, 100 * time.Millisecond, 400 * time.Millisecond, 500 * time.Millisecond,
	}, l.times(), "a call comes as long after the one before as its own tokens take")
}

func TestQueueAllocatesNothing(t *testing.T) {
	l := newTestQueue(t, throttle(1000, time.Millisecond))
	w := unwoken()
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		l.now = l.now.Add(700 * time.Microsecond)
		if turn, decision := l.queue.Take(l.compiled, l.now, 1); decision == rule.Pass {
			l.queue.GiveBack(l.now, turn)
		}
		w.Again(func() {})
		if _, decision := l.queue.Join(l.compiled, l.now, 1, time.Second, w); decision == rule.Wait {
			l.queue.Poll(l.now, w)
			l.queue.Leave(l.now, w)
		}
	}))
}
