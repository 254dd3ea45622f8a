package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
)

func TestSeveralQueuesGrantOneInstant(t *testing.T) {
	t.Parallel()
	slow, fast := newTestQueue(t, throttle(1, time.Minute)), newTestQueue(t, throttle(10, time.Minute))
	asks := []flow.Ask{{Queue: slow.queue, Terms: slow.terms}, {Queue: fast.queue, Terms: fast.terms}}
	tickets := make([]flow.Ticket, 2)

	_, _, decision := flow.TakeAll(asks, epoch, 1, time.Hour, tickets)
	require.Equal(t, flow.Passed, decision)
	which, latest, decision := flow.TakeAll(asks, epoch, 1, time.Hour, tickets)
	require.Equal(t, flow.Queued, decision)
	assert.Equal(t, 0, which)
	assert.Equal(t, epoch.Add(time.Second), latest.Turn(), "that of the slow one")
	which, _, decision = flow.TakeAll(asks, epoch, 1, 500*time.Millisecond, tickets)
	assert.Equal(t, flow.Refused, decision, "it cannot wait so long")
	assert.Equal(t, 0, which)

	// It has the first place in the fast queue half a second before the slow one is due.
	now := epoch.Add(500 * time.Millisecond)
	inSlow, _, decision := slow.queue.Hold(slow.terms, now, now, 1, time.Minute, flow.NewWaiter(func() {}))
	require.Equal(t, flow.Queued, decision)
	inFast, _, decision := fast.queue.Hold(fast.terms, now, now, 1, time.Minute, flow.NewWaiter(func() {}))
	require.Equal(t, flow.Passed, decision)
	places := []flow.Place{inSlow, inFast}
	assert.Equal(t, flow.Queued, flow.PassAll(asks, places, epoch, now, tickets))
	inFast.Expect(epoch.Add(time.Second))
	behind, decision := fast.queue.Expect(fast.terms, now, 1, time.Hour)
	assert.Equal(t, flow.Queued, decision)
	assert.Equal(t, epoch.Add(1100*time.Millisecond), behind.Turn(), "behind the one that waits for the slow queue")

	after, decision := inSlow.Ready(now)
	assert.Equal(t, flow.Queued, decision)
	now = now.Add(after + 7) // woken late
	require.Equal(t, flow.Passed, flow.PassAll(asks, places, epoch, now, tickets))
	for _, ticket := range tickets {
		assert.Equal(t, epoch.Add(time.Second), ticket.Turn())
	}
	_, latest, _ = flow.ExpectAll(asks[1:], now, 1, time.Hour)
	assert.Equal(t, epoch.Add(1100*time.Millisecond), latest.Turn())
}

func TestAPlaceThatIsLeftIsThatOfTheNext(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, throttle(1, time.Minute))
	require.Equal(t, flow.Passed, l.arrive(1))
	first, _, _ := l.queue.Hold(l.terms, l.now, l.now, 1, time.Minute, flow.NewWaiter(func() {}))
	woken := false
	second, _, _ := l.queue.Hold(l.terms, l.now, l.now, 1, time.Minute, flow.NewWaiter(func() { woken = true }))
	after, _ := second.Ready(l.now)
	assert.Equal(t, time.Minute+1, after, "it gives up when its time is over")
	first.Leave(l.now)
	assert.True(t, woken)
	after, decision := second.Ready(l.now)
	assert.Equal(t, flow.Queued, decision)
	assert.Equal(t, time.Second, after)
	l.queue.Retire()
	_, decision = second.Ready(l.now)
	assert.Equal(t, flow.Outdated, decision)
}
