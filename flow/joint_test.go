package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

func TestSeveralQueuesLetACallPassAtOneInstant(t *testing.T) {
	t.Parallel()
	slow, fast := newTestQueue(t, throttle(1, time.Minute)), newTestQueue(t, throttle(10, time.Minute))
	queues := []flow.QueueRule{{Queue: slow.queue, Compiled: slow.compiled}, {Queue: fast.queue, Compiled: fast.compiled}}
	turns := make([]flow.Turn, 2)

	_, _, decision := flow.TakeAll(queues, epoch, 1, time.Hour, turns)
	require.Equal(t, rule.Pass, decision)
	which, latest, decision := flow.TakeAll(queues, epoch, 1, time.Hour, turns)
	require.Equal(t, rule.Wait, decision)
	assert.Equal(t, 0, which)
	assert.Equal(t, epoch.Add(time.Second), latest.Time(), "that of the slow one")
	which, _, decision = flow.TakeAll(queues, epoch, 1, 500*time.Millisecond, turns)
	assert.Equal(t, rule.Block, decision, "it cannot wait so long")
	assert.Equal(t, 0, which)

	// It has the first place in the fast queue half a second before the slow one is due.
	now := epoch.Add(500 * time.Millisecond)
	inSlow, _, decision := slow.queue.TakePlace(slow.compiled, now, now, 1, time.Minute, flow.NewWaiter(func() {}))
	require.Equal(t, rule.Wait, decision)
	inFast, _, decision := fast.queue.TakePlace(fast.compiled, now, now, 1, time.Minute, flow.NewWaiter(func() {}))
	require.Equal(t, rule.Pass, decision)
	places := []flow.Place{inSlow, inFast}
	assert.Equal(t, rule.Wait, flow.PassAll(queues, places, epoch, now, turns))
	inFast.Expect(epoch.Add(time.Second))
	behind, decision := fast.queue.Expect(fast.compiled, now, 1, time.Hour)
	assert.Equal(t, rule.Wait, decision)
	assert.Equal(t, epoch.Add(1100*time.Millisecond), behind.Time(), "behind the one that waits for the slow queue")

	after, decision := inSlow.Ready(now)
	assert.Equal(t, rule.Wait, decision)
	now = now.Add(after + 7) // woken late
	require.Equal(t, rule.Pass, flow.PassAll(queues, places, epoch, now, turns))
	for _, turn := range turns {
		assert.Equal(t, epoch.Add(time.Second), turn.Time())
	}
	_, latest, _ = flow.ExpectAll(queues[1:], now, 1, time.Hour)
	assert.Equal(t, epoch.Add(1100*time.Millisecond), latest.Time())
}

func TestNextWaiterMovesUpWhenAPlaceIsLeft(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, throttle(1, time.Minute))
	require.Equal(t, rule.Pass, l.arrive(1))
	first, _, _ := l.queue.TakePlace(l.compiled, l.now, l.now, 1, time.Minute, flow.NewWaiter(func() {}))
	woken := false
	second, _, _ := l.queue.TakePlace(l.compiled, l.now, l.now, 1, time.Minute, flow.NewWaiter(func() { woken = true }))
	after, _ := second.Ready(l.now)
	assert.Equal(t, time.Minute+1, after, "it gives up when its time is over")
	first.Leave(l.now)
	assert.True(t, woken)
	after, decision := second.Ready(l.now)
	assert.Equal(t, rule.Wait, decision)
	assert.Equal(t, time.Second, after)
	l.queue.Retire()
	_, decision = second.Ready(l.now)
	assert.Equal(t, rule.Stale, decision)
}
