package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// rankedQueue is a queue with calls of several priorities.
type rankedQueue struct {
	t        *testing.T
	queue    *flow.Queue
	compiled *flow.Compiled
	now      clock.Instant
	waiting  []rankedCall
	passed   []string
	times    []time.Duration
	refused  []string
}

type rankedCall struct {
	name   string
	waiter *flow.Waiter
}

func newRankedQueue(t *testing.T, r flow.Rule) *rankedQueue {
	t.Helper()
	compiled := compile(t, r, 1)
	return &rankedQueue{t: t, queue: flow.NewQueue(compiled, epoch), compiled: compiled, now: epoch}
}

// arrive has a call of n tokens come, which waits if it has to.
func (q *rankedQueue) arrive(name string, p rule.Priority, n int32) rule.Decision {
	q.t.Helper()
	w := unwoken().WithPriority(p)
	_, decision := q.queue.Join(q.compiled, q.now, n, time.Hour, w)
	switch decision {
	case rule.Pass:
		q.pass(name, q.now)
	case rule.Wait:
		q.waiting = append(q.waiting, rankedCall{name, w})
	}
	return decision
}

func (q *rankedQueue) pass(name string, at clock.Instant) {
	q.passed, q.times = append(q.passed, name), append(q.times, at.Sub(epoch))
}

// run lets time pass in steps, in each of which every call looks how it stands.
func (q *rankedQueue) run(d, step time.Duration) {
	for end := q.now.Add(d); q.now < end; {
		q.now = q.now.Add(step)
		still := q.waiting[:0]
		for _, c := range q.waiting {
			switch turn, _, decision := q.queue.Poll(q.now, c.waiter); decision {
			case rule.Pass:
				q.pass(c.name, turn.Time())
			case rule.Wait:
				still = append(still, c)
			default:
				q.refused = append(q.refused, c.name)
			}
		}
		q.waiting = still
	}
	require.NoError(q.t, q.queue.CheckWaiters(len(q.waiting)))
}

func TestThrottleLetsTheMostImportantCallPassFirst(t *testing.T) {
	t.Parallel()
	q := newRankedQueue(t, throttle(10, 10*time.Second))
	q.arrive("first", rule.PriorityNormal, 1)
	q.arrive("low", rule.PriorityLow, 1)
	q.arrive("normal", rule.PriorityNormal, 1)
	q.arrive("sheddable", rule.PrioritySheddable, 1)
	q.arrive("critical", rule.PriorityCritical, 1)
	q.arrive("normal 2", rule.PriorityNormal, 1)
	q.arrive("high", rule.PriorityHigh, 1)
	q.run(time.Second, 50*time.Millisecond)
	assert.Equal(t, []string{"first", "critical", "high", "normal", "normal 2", "low", "sheddable"}, q.passed)
	assert.Equal(t, every(100*time.Millisecond, 7), q.times)
}

func TestMoreImportantCallTakesThePlaceOfTheFirst(t *testing.T) {
	t.Parallel()
	q := newRankedQueue(t, throttle(1, 2500*time.Millisecond))
	q.arrive("first", rule.PriorityNormal, 1)
	q.arrive("low", rule.PriorityLow, 1)
	q.arrive("low 2", rule.PriorityLow, 1)
	q.run(600*time.Millisecond, 100*time.Millisecond)
	q.arrive("high", rule.PriorityHigh, 1)
	q.run(5*time.Second, 100*time.Millisecond)
	assert.Equal(t, []string{"first", "high", "low"}, q.passed)
	assert.Equal(t, every(time.Second, 3), q.times)
	assert.Equal(t, []string{"low 2"}, q.refused, "it would have had to wait three seconds")
}

func TestOvertakenCallIsRefusedWhenItHasWaitedAsLongAsItMay(t *testing.T) {
	t.Parallel()
	q := newRankedQueue(t, throttle(10, time.Second))
	woken := 0
	w := flow.NewWaiter(func() { woken++ }).WithPriority(rule.PriorityLow)
	q.arrive("first", rule.PriorityNormal, 1)
	for range 3 {
		q.arrive("low", rule.PriorityLow, 1)
	}
	_, decision := q.queue.Join(q.compiled, q.now, 1, time.Hour, w)
	require.Equal(t, rule.Wait, decision)
	_, after, _ := q.queue.Poll(q.now, w)
	assert.Zero(t, after, "it passes in time unless it is overtaken")
	q.arrive("high", rule.PriorityHigh, 1)
	assert.Equal(t, 1, woken, "so that it looks when to give up")
	_, after, _ = q.queue.Poll(q.now, w)
	assert.Equal(t, time.Second, after)
	for range 9 {
		q.arrive("high", rule.PriorityHigh, 1)
	}
	assert.Equal(t, 1, woken)
	_, after, decision = q.queue.Poll(q.now.Add(900*time.Millisecond), w)
	assert.Equal(t, rule.Wait, decision)
	assert.Equal(t, 100*time.Millisecond, after)
	_, _, decision = q.queue.Poll(q.now.Add(time.Second), w)
	assert.Equal(t, rule.Block, decision)
}

func TestEveryEighthPassOfAThrottleGoesToALowerPriority(t *testing.T) {
	t.Parallel()
	q := newRankedQueue(t, throttle(10, time.Minute))
	q.arrive("first", rule.PriorityNormal, 1)
	q.arrive("low", rule.PriorityLow, 1)
	q.arrive("sheddable", rule.PrioritySheddable, 1)
	q.arrive("low", rule.PriorityLow, 1)
	for range 30 {
		q.arrive("high", rule.PriorityHigh, 1)
	}
	q.run(3500*time.Millisecond, 50*time.Millisecond)
	var others []int
	for i, name := range q.passed[1:] {
		if name != "high" {
			others = append(others, i)
		}
	}
	assert.Equal(t, []int{7, 15, 23}, others)
	assert.Equal(t, []string{"low", "sheddable", "low"}, []string{q.passed[8], q.passed[16], q.passed[24]}, "the oldest first")
}

func TestImportantCallIsNotRefusedForLessImportantOnesThatWait(t *testing.T) {
	t.Parallel()
	q := newRankedQueue(t, throttle(10, time.Second))
	q.arrive("first", rule.PriorityNormal, 1)
	for range 10 {
		require.Equal(t, rule.Wait, q.arrive("normal", rule.PriorityNormal, 1))
	}
	require.Equal(t, rule.Block, q.arrive("normal", rule.PriorityNormal, 1))
	require.Equal(t, rule.Block, q.arrive("low", rule.PriorityLow, 1))
	assert.Equal(t, 100*time.Millisecond, q.queue.RetryAfter(q.now, 1, time.Hour))
	assert.Equal(t, rule.Wait, q.arrive("high", rule.PriorityHigh, 1))
	q.run(2*time.Second, 50*time.Millisecond)
	assert.Len(t, q.passed, 11)
	assert.Equal(t, []string{"normal"}, q.refused)
}

func TestSmallImportantCallPassesTheTokenBucketBeforeALargeOneThatWaits(t *testing.T) {
	t.Parallel()
	q := newRankedQueue(t, flow.Rule{Resource: "r", Limit: 10, Algorithm: flow.TokenBucket, Burst: 10, MaxWait: time.Minute})
	q.arrive("first", rule.PriorityNormal, 8)
	require.Equal(t, rule.Wait, q.arrive("large", rule.PriorityNormal, 5))
	assert.Equal(t, rule.Wait, q.arrive("small", rule.PriorityNormal, 1), "behind the large one")
	assert.Equal(t, rule.Pass, q.arrive("high", rule.PriorityHigh, 2))
	require.NoError(t, q.queue.CheckWaiters(2))
	q.run(time.Second, 50*time.Millisecond)
	assert.Equal(t, []string{"first", "high", "large", "small"}, q.passed)
	assert.Equal(t, []time.Duration{0, 0, 500 * time.Millisecond, 600 * time.Millisecond}, q.times)
}

func TestSmallImportantCallsLeaveOneOfEightPassesToALargeOne(t *testing.T) {
	t.Parallel()
	q := newRankedQueue(t, flow.Rule{Resource: "r", Limit: 100, Algorithm: flow.TokenBucket, Burst: 10, MaxWait: time.Minute})
	q.arrive("first", rule.PriorityNormal, 10)
	require.Equal(t, rule.Wait, q.arrive("large", rule.PriorityNormal, 10))
	high := 0
	for len(q.passed) == high+1 && high < 100 {
		q.run(10*time.Millisecond, 10*time.Millisecond)
		if q.arrive("high", rule.PriorityHigh, 1) == rule.Pass {
			high++
		}
	}
	assert.Equal(t, 7, high)
}

func TestStatusCountsBehindAllCallsThatWait(t *testing.T) {
	t.Parallel()
	q := newRankedQueue(t, throttle(10, time.Second))
	q.arrive("first", rule.PriorityNormal, 1)
	for i := range 6 {
		q.arrive("some", []rule.Priority{rule.PriorityLow, rule.PriorityHigh}[i%2], 1)
	}
	_, remaining, reset := q.queue.Status(q.now)
	assert.Equal(t, int64(4), remaining)
	assert.InDelta(t, 100*time.Millisecond, reset, 10)
}
