package flow_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
)

func TestQueueSpacesTurnsEvenly(t *testing.T) {
	t.Parallel()
	for limit, spacing := range map[float64]time.Duration{
		0.1: 10 * time.Second, 0.5: 2 * time.Second, 1: time.Second, 100: 10 * time.Millisecond,
		1000: time.Millisecond, 5000: 200 * time.Microsecond, 2.5: 400 * time.Millisecond,
		// Rounded up to the nanosecond: turns are never closer than they may be.
		3: 333_333_334, 333.3: 3_000_301, 7: 142_857_143,
	} {
		const calls = 500
		l := newLine(t, throttle(limit, flow.MaxMaxWait))
		l.call(calls)
		l.moveTo(calls * spacing)
		require.Len(t, l.turns, calls, "limit %v", limit)
		assert.Equal(t, every(spacing, calls), l.times(), "limit %v", limit)
		assert.IsIncreasing(t, l.ids(), "limit %v: first come, first served", limit)
	}
}

func TestQueueKeepsItsRateUnderOverload(t *testing.T) {
	t.Parallel()
	for _, limit := range []float64{0.5, 3, 33.4, 100, 1000, 5000} {
		l := newLine(t, throttle(limit, time.Second))
		const span = 10
		for k := range int(3*span*max(1, limit)) + 1 {
			l.moveTo(seconds(float64(k) / (3 * max(1, limit))))
			l.arrive(1)
		}
		assert.InDelta(t, limit*span, len(l.turns), 1+limit*span/100, "limit %v", limit)
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
		l := newLine(t, rule)
		l.call(10)
		l.moveTo(window)
		assert.Equal(t, every(spacing, 10), l.times(), "window %v", window)
	}
}

func TestQueueTurnIsNoEarlierThanTheArrival(t *testing.T) {
	t.Parallel()
	l := newLine(t, throttle(1, time.Second))
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
	l := newLine(t, throttle(10, 250*time.Millisecond))
	want := []flow.Decision{flow.Passed, flow.Queued, flow.Queued, flow.Refused, flow.Refused}
	for i, decision := range want {
		assert.Equal(t, decision, l.arrive(1), "call %d", i)
	}
	l.moveTo(50 * time.Millisecond)
	assert.Equal(t, flow.Queued, l.arrive(1), "exactly as long as it may")
	assert.Equal(t, flow.Refused, l.arrive(1))
	l.moveTo(time.Second)
	assert.Equal(t, every(100*time.Millisecond, 4), l.times(), "the refused left no gap")
}

func TestQueueWithoutPatience(t *testing.T) {
	t.Parallel()
	l := newLine(t, throttle(10, 0))
	assert.Equal(t, flow.Passed, l.arrive(1))
	assert.Equal(t, flow.Refused, l.arrive(1), "nobody waits by default")
	l.moveTo(100*time.Millisecond - 1)
	assert.Equal(t, flow.Refused, l.arrive(1))
	l.moveTo(100 * time.Millisecond)
	assert.Equal(t, flow.Passed, l.arrive(1))

	patient := newLine(t, throttle(10, time.Second))
	assert.Equal(t, flow.Passed, patient.arriveFor(1, -time.Second), "a call that need not wait may have none")
	assert.Equal(t, flow.Refused, patient.arriveFor(1, 99*time.Millisecond))
	assert.Equal(t, flow.Queued, patient.arriveFor(1, 100*time.Millisecond))
	assert.Equal(t, flow.Refused, patient.arriveFor(1, -time.Second))
}

func TestQueueTakeDoesNotWait(t *testing.T) {
	t.Parallel()
	l := newLine(t, throttle(10, 150*time.Millisecond))
	take := func() flow.Decision {
		_, decision := l.queue.Take(l.terms, l.now, 1)
		return decision
	}
	assert.Equal(t, flow.Passed, take())
	assert.Equal(t, flow.Queued, take(), "it would have to join")
	assert.Equal(t, flow.Queued, take(), "and has not")
	assert.Equal(t, flow.Queued, l.arrive(1))
	assert.Equal(t, flow.Refused, take())
	assert.NoError(t, l.queue.CheckLine(1))
}

func TestQueueOfLimitZero(t *testing.T) {
	t.Parallel()
	l := newLine(t, throttle(0, time.Hour))
	assert.Equal(t, flow.Refused, l.arrive(1))
	assert.Zero(t, l.queue.RetryAfter(l.now, 1, time.Hour))
	ceiling, room, reset := l.queue.Status(l.now)
	assert.Equal(t, []any{0.0, int64(0), time.Duration(0)}, []any{ceiling, room, reset})
}

func TestQueueOfTheLargestLimit(t *testing.T) {
	t.Parallel()
	l := newLine(t, throttle(flow.MaxLimit, time.Second))
	l.call(100)
	l.moveTo(time.Microsecond)
	assert.Equal(t, every(time.Nanosecond, 100), l.times())
	l.arrive(math.MaxInt32)
	assert.Len(t, l.turns, 100, "too many at once")
}

func TestQueueWeighsTokens(t *testing.T) {
	t.Parallel()
	l := newLine(t, throttle(10, time.Minute))
	for _, n := range []int32{5, 1, 3, 1} {
		l.arrive(n)
	}
	l.moveTo(time.Minute)
	assert.Equal(t, []time.Duration{
		0, 100 * time.Millisecond, 400 * time.Millisecond, 500 * time.Millisecond,
	}, l.times(), "a call comes as long after the one before as its own tokens take")
}

func TestQueueCancelledWaits(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		weights []int32
		at      time.Duration
		cancel  []int
		ids     []int
		times   []float64 // seconds
	}{
		"the first: all move up":       {[]int32{1, 1, 1, 1}, 0, []int{1}, []int{0, 2, 3}, []float64{0, 1, 2}},
		"one in the middle":            {[]int32{1, 1, 1, 1}, 0, []int{2}, []int{0, 1, 3}, []float64{0, 1, 2}},
		"the last":                     {[]int32{1, 1, 1, 1}, 0, []int{3}, []int{0, 1, 2}, []float64{0, 1, 2}},
		"all":                          {[]int32{1, 1, 1, 1}, 0, []int{2, 3, 1}, []int{0}, []float64{0}},
		"late, but in time":            {[]int32{1, 1, 1, 1}, 1500 * time.Millisecond, []int{2}, []int{0, 1, 3}, []float64{0, 1, 2}},
		"a heavy one":                  {[]int32{1, 10, 1, 1}, 0, []int{1}, []int{0, 2, 3}, []float64{0, 1, 2}},
		"a heavy one that waited long": {[]int32{1, 10, 1, 1, 1}, 9500 * time.Millisecond, []int{1}, []int{0, 2, 3, 4}, []float64{0, 9.5, 10.5, 11.5}},
		"a heavy one in the middle":    {[]int32{1, 1, 10, 1, 1}, 500 * time.Millisecond, []int{2}, []int{0, 1, 3, 4}, []float64{0, 1, 2, 3}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLine(t, throttle(1, time.Minute))
			for _, n := range test.weights {
				l.arrive(n)
			}
			l.moveTo(test.at)
			for _, id := range test.cancel {
				l.cancel(id)
			}
			l.moveTo(time.Minute)
			assert.Equal(t, test.ids, l.ids())
			for i, at := range test.times {
				assert.Equal(t, seconds(at), l.times()[i], "turn %d", i)
			}
			assert.NoError(t, l.queue.CheckLine(0))
		})
	}
}

func TestQueueCancelledTooLate(t *testing.T) {
	t.Parallel()
	l := newLine(t, throttle(1, time.Minute))
	l.call(3)
	l.now = epoch.Add(time.Second)
	_, decision := l.queue.Take(l.terms, l.now, 1)
	assert.Equal(t, flow.Queued, decision)

	ticket, left := l.queue.Leave(l.now, l.waiting[0].waiter)
	assert.False(t, left, "its turn has come before")
	assert.Equal(t, epoch.Add(time.Second), ticket.Turn())
	l.queue.GiveBack(l.now, ticket)
	l.waiting = l.waiting[1:]
	l.moveTo(time.Minute)
	assert.Equal(t, []time.Duration{0, time.Second}, l.times(), "the one behind took it")
}

func TestQueueGiveBack(t *testing.T) {
	t.Parallel()
	t.Run("the next comer takes the turn", func(t *testing.T) {
		t.Parallel()
		l := newLine(t, throttle(1, 0))
		l.arrive(1)
		l.giveBackLast()
		assert.Equal(t, flow.Passed, l.arrive(1))
		assert.Equal(t, flow.Refused, l.arrive(1), "but only once")
	})
	t.Run("those behind move up", func(t *testing.T) {
		t.Parallel()
		l := newLine(t, throttle(1, time.Minute))
		l.call(4)
		l.giveBackLast()
		l.moveTo(time.Minute)
		assert.Equal(t, []int{1, 2, 3}, l.ids())
		assert.Equal(t, every(time.Second, 3), l.times())
	})
	t.Run("late: never closer than their spacing", func(t *testing.T) {
		t.Parallel()
		l := newLine(t, throttle(1, time.Minute))
		l.call(5)
		l.moveTo(1400 * time.Millisecond)
		l.giveBackLast()
		l.moveTo(time.Minute)
		assert.Equal(t, []int{0, 2, 3, 4}, l.ids())
		assert.Equal(t, []time.Duration{0, seconds(1.4), seconds(2.4), seconds(3.4)}, l.times())
	})
	t.Run("of a heavy call", func(t *testing.T) {
		t.Parallel()
		l := newLine(t, throttle(1, time.Minute))
		l.arrive(1)
		l.arrive(10)
		l.call(3)
		l.moveTo(10500 * time.Millisecond)
		l.giveBackLast()
		l.moveTo(time.Minute)
		assert.Equal(t, []time.Duration{0, seconds(10.5), seconds(11.5), seconds(12.5)}, l.times())
	})
	t.Run("one after the other, the last first", func(t *testing.T) {
		t.Parallel()
		l := newLine(t, throttle(1, time.Minute))
		l.call(3)
		l.moveTo(2 * time.Second)
		l.giveBackLast()
		l.giveBackLast()
		assert.Equal(t, flow.Passed, l.arrive(1))
		assert.Equal(t, flow.Queued, l.arrive(1))
	})
	t.Run("not once a later turn was granted", func(t *testing.T) {
		t.Parallel()
		l := newLine(t, throttle(1, time.Minute))
		l.call(3)
		l.moveTo(time.Second)
		l.queue.GiveBack(l.now, l.turns[0].ticket)
		l.moveTo(time.Minute)
		assert.Equal(t, every(time.Second, 3), l.times())
	})
}

func TestQueueUnderAChangedRule(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		at     time.Duration
		change func(r *flow.Rule)
		times  []float64 // of five calls at time 0, at first 1 per second
	}{
		"half the limit":            {500 * time.Millisecond, func(r *flow.Rule) { r.Limit = 0.5 }, []float64{0, 2, 4, 6, 8}},
		"twice the limit":           {250 * time.Millisecond, func(r *flow.Rule) { r.Limit = 2 }, []float64{0, 0.5, 1, 1.5, 2}},
		"a limit that is far ahead": {900 * time.Millisecond, func(r *flow.Rule) { r.Limit = 10 }, []float64{0, 0.9, 1, 1.1, 1.2}},
		"another window":            {0, func(r *flow.Rule) { r.Window = time.Minute }, []float64{0, 60, 120, 180, 240}},
		"nothing changes":           {1500 * time.Millisecond, func(*flow.Rule) {}, []float64{0, 1, 2, 3, 4}},
		"nothing is allowed":        {1500 * time.Millisecond, func(r *flow.Rule) { r.Limit = 0 }, []float64{0, 1}},
		"less patience":             {0, func(r *flow.Rule) { r.MaxWait = 2500 * time.Millisecond }, []float64{0, 1, 2}},
		"no patience":               {0, func(r *flow.Rule) { r.MaxWait = 0 }, []float64{0}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLine(t, throttle(1, time.Hour))
			l.call(5)
			l.moveTo(test.at)
			l.change(test.change)
			l.moveTo(time.Hour)
			want := make([]time.Duration, len(test.times))
			for i, at := range test.times {
				want[i] = seconds(at)
			}
			assert.Equal(t, want, l.times())
			assert.NoError(t, l.queue.CheckLine(0), "nobody hangs")
		})
	}
}

func TestQueueKeepsItsLastTurnOverAChangedRule(t *testing.T) {
	t.Parallel()
	l := newLine(t, throttle(1, time.Minute))
	l.arrive(1)
	l.moveTo(100 * time.Millisecond)
	l.change(func(r *flow.Rule) { r.Limit = 2 })
	l.arrive(1)
	l.moveTo(time.Second)
	assert.Equal(t, []time.Duration{0, 500 * time.Millisecond}, l.times())
}

func TestQueueKnowsOutdatedTerms(t *testing.T) {
	t.Parallel()
	l := newLine(t, throttle(1, time.Minute))
	old := l.terms
	l.change(func(r *flow.Rule) { r.Limit = 100 })
	_, decision := l.queue.Take(old, l.now, 1)
	assert.Equal(t, flow.Outdated, decision)
	_, decision = l.queue.Join(old, l.now, 1, time.Minute, flow.NewWaiter())
	assert.Equal(t, flow.Outdated, decision)
	l.queue.Adopt(old, l.now)
	l.call(3)
	l.moveTo(time.Second)
	assert.Equal(t, every(10*time.Millisecond, 3), l.times(), "by the newer terms")
}

func TestQueueTakesOverNewerTermsWithACall(t *testing.T) {
	t.Parallel()
	l := newLine(t, throttle(1, time.Minute))
	newer := compile(t, throttle(100, time.Minute), 2)
	_, decision := l.queue.Take(newer, l.now, 1)
	assert.Equal(t, flow.Passed, decision)
	_, decision = l.queue.Take(l.terms, l.now, 1)
	assert.Equal(t, flow.Outdated, decision)
}

func TestQueueRetireLetsEveryoneGo(t *testing.T) {
	t.Parallel()
	l := newLine(t, throttle(1, time.Minute))
	l.call(4)
	l.queue.Retire()
	for _, c := range l.waiting {
		assert.Len(t, c.waiter.Wake, 1, "woken")
		_, _, decision := l.queue.Turn(l.now, c.waiter)
		assert.Equal(t, flow.Outdated, decision)
		_, left := l.queue.Leave(l.now, c.waiter)
		assert.True(t, left, "there is no turn to give back")
	}
	assert.NoError(t, l.queue.CheckLine(0))
	_, decision := l.queue.Take(l.terms, l.now, 1)
	assert.Equal(t, flow.Outdated, decision)
	newer := compile(t, throttle(100, time.Minute), 9)
	_, decision = l.queue.Join(newer, l.now, 1, time.Minute, flow.NewWaiter())
	assert.Equal(t, flow.Outdated, decision, "newer terms do not bring it back")
}

func TestQueueWakesWhoBecomesTheFirst(t *testing.T) {
	t.Parallel()
	l := newLine(t, throttle(1, time.Minute))
	l.call(4)
	woken := func(id int) bool {
		select {
		case <-l.waiting[id-1].waiter.Wake:
			return true
		default:
			return false
		}
	}
	turn := func(id int) (time.Duration, flow.Decision) {
		_, until, decision := l.queue.Turn(l.now, l.waiting[id-1].waiter)
		return until, decision
	}
	assert.True(t, woken(1), "the first of all")
	assert.False(t, woken(2))
	until, decision := turn(2)
	assert.Equal(t, flow.Queued, decision)
	assert.Zero(t, until, "it does not know yet")

	l.now = epoch.Add(time.Second)
	_, decision = turn(1)
	assert.Equal(t, flow.Passed, decision)
	assert.True(t, woken(1), "its turn has come")
	assert.True(t, woken(2), "it is the first now")
	assert.False(t, woken(3))
	until, _ = turn(2)
	assert.Equal(t, time.Second, until)

	l.queue.Leave(l.now, l.waiting[1].waiter)
	assert.True(t, woken(3))
	l.change(func(r *flow.Rule) { r.Limit = 4 })
	assert.True(t, woken(3), "its turn is another")
	until, _ = turn(3)
	assert.Equal(t, 250*time.Millisecond, until)
}

func TestQueueWaiterCanBeUsedAgain(t *testing.T) {
	t.Parallel()
	l := newLine(t, throttle(1, time.Minute))
	w := flow.NewWaiter()
	for i := range 5 {
		_, decision := l.queue.Join(l.terms, l.now, 1, time.Minute, w)
		if i == 0 {
			assert.Equal(t, flow.Passed, decision)
			continue
		}
		assert.Equal(t, flow.Queued, decision)
		l.now = l.now.Add(time.Second)
		ticket, _, decision := l.queue.Turn(l.now, w)
		assert.Equal(t, flow.Passed, decision)
		assert.Equal(t, l.now, ticket.Turn())
	}
}

func TestQueueCatchesUpOnTurnsThatNobodyAskedFor(t *testing.T) {
	t.Parallel()
	l := newLine(t, throttle(1, time.Minute))
	l.call(4)
	l.now = epoch.Add(10 * time.Second)
	for i, c := range l.waiting {
		ticket, _, decision := l.queue.Turn(l.now, c.waiter)
		assert.Equal(t, flow.Passed, decision)
		assert.Equal(t, epoch.Add(time.Duration(i+1)*time.Second), ticket.Turn(), "woken late or not")
	}
}

func TestQueueRetryAfter(t *testing.T) {
	t.Parallel()
	l := newLine(t, throttle(10, 250*time.Millisecond))
	l.call(3)
	assert.Equal(t, flow.Refused, l.arrive(1))
	assert.Equal(t, 50*time.Millisecond, l.queue.RetryAfter(l.now, 1, time.Hour))
	assert.Equal(t, 150*time.Millisecond, l.queue.RetryAfter(l.now, 2, time.Hour), "a heavier call later")
	assert.Equal(t, 200*time.Millisecond, l.queue.RetryAfter(l.now, 1, 100*time.Millisecond), "and one of less patience")
	assert.Equal(t, 300*time.Millisecond, l.queue.RetryAfter(l.now, 1, -time.Second))
}

func TestQueueStatus(t *testing.T) {
	t.Parallel()
	l := newLine(t, throttle(10, 250*time.Millisecond))
	status := func() []any {
		ceiling, room, reset := l.queue.Status(l.now)
		return []any{ceiling, room, reset}
	}
	l.call(1)
	assert.Equal(t, []any{10.0, int64(2), 50 * time.Millisecond}, status())
	before := status()
	assert.Equal(t, before, status(), "asking changes nothing")
	l.call(2)
	assert.Equal(t, []any{10.0, int64(0), 50 * time.Millisecond}, status())
	l.moveTo(50 * time.Millisecond)
	assert.Equal(t, []any{10.0, int64(1), 100 * time.Millisecond}, status())
}

func TestQueueAllocatesNothing(t *testing.T) {
	l := newLine(t, throttle(1000, time.Millisecond))
	w := flow.NewWaiter()
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		l.now = l.now.Add(700 * time.Microsecond)
		if ticket, decision := l.queue.Take(l.terms, l.now, 1); decision == flow.Passed {
			l.queue.GiveBack(l.now, ticket)
		}
		if _, decision := l.queue.Join(l.terms, l.now, 1, time.Second, w); decision == flow.Queued {
			l.queue.Turn(l.now, w)
			l.queue.Leave(l.now, w)
		}
	}))
}
