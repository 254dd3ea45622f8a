package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

func TestQueueWakesTheNextWaiter(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, throttle(1, time.Minute))
	l.call(4)
	woken := func(id int) bool {
		select {
		case <-l.waiting[id-1].woken:
			return true
		default:
			return false
		}
	}
	passAt := func(id int) (time.Duration, rule.Decision) {
		_, until, decision := l.queue.Poll(l.now, l.waiting[id-1].waiter)
		return until, decision
	}
	assert.False(t, woken(1), "the first of all asks by itself")
	assert.False(t, woken(2))
	until, decision := passAt(2)
	assert.Equal(t, rule.Wait, decision)
	assert.Zero(t, until, "it does not know yet")

	l.now = epoch.Add(time.Second)
	_, decision = passAt(1)
	assert.Equal(t, rule.Pass, decision)
	assert.True(t, woken(1), "its time has come")
	assert.True(t, woken(2), "it is the first now")
	assert.False(t, woken(3))
	until, _ = passAt(2)
	assert.Equal(t, time.Second, until)

	l.queue.Leave(l.now, l.waiting[1].waiter)
	assert.True(t, woken(3))
	l.change(func(r *flow.Rule) { r.Limit = 4 })
	assert.True(t, woken(3), "it passes at another time")
	until, _ = passAt(3)
	assert.Equal(t, 250*time.Millisecond, until)
}

func TestQueueLetsDueWaitersPassThoughTheyDidNotPoll(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, throttle(1, time.Minute))
	l.call(4)
	l.now = epoch.Add(10 * time.Second)
	for i, c := range l.waiting {
		turn, _, decision := l.queue.Poll(l.now, c.waiter)
		assert.Equal(t, rule.Pass, decision)
		assert.Equal(t, epoch.Add(time.Duration(i+1)*time.Second), turn.Time(), "woken late or not")
	}
}

func TestQueueRetryAfter(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, throttle(10, 250*time.Millisecond))
	l.call(3)
	assert.Equal(t, rule.Block, l.arrive(1))
	assert.Equal(t, 50*time.Millisecond, l.queue.RetryAfter(l.now, 1, time.Hour))
	assert.Equal(t, 150*time.Millisecond, l.queue.RetryAfter(l.now, 2, time.Hour), "a heavier call later")
	assert.Equal(t, 200*time.Millisecond, l.queue.RetryAfter(l.now, 1, 100*time.Millisecond), "and one of less patience")
	assert.Equal(t, 300*time.Millisecond, l.queue.RetryAfter(l.now, 1, -time.Second))
}

func TestReservationOfARefusalTellsWhenToRetry(t *testing.T) {
	t.Parallel()
	rules := map[string]flow.Rule{
		"throttle": throttle(10, 250*time.Millisecond), "bucket": bucket(10, 2), "closed": throttle(0, time.Hour),
	}
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compiled := compile(t, r, 1)
			queue := flow.NewQueue(compiled, epoch)
			decision := rule.Pass
			for decision != rule.Block {
				_, decision = queue.Join(compiled, epoch, 1, time.Hour, unwoken())
			}
			for _, patience := range []time.Duration{-time.Second, 0, 100 * time.Millisecond, time.Hour} {
				taken, decision := queue.Take(compiled, epoch, 1)
				require.Equal(t, rule.Block, decision)
				joined, decision := queue.Join(compiled, epoch, 1, patience, unwoken())
				require.Equal(t, rule.Block, decision)
				want := queue.RetryAfter(epoch, 1, patience)
				assert.Equal(t, want, compiled.RetryAfter(taken, epoch, patience), "patience %v", patience)
				assert.Equal(t, want, compiled.RetryAfter(joined, epoch, patience), "patience %v", patience)
			}
		})
	}
}

func TestQueueStatus(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, throttle(10, 250*time.Millisecond))
	status := func() []any {
		limit, remaining, reset := l.queue.Status(l.now)
		return []any{limit, remaining, reset}
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
