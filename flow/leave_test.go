package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// A waiter whose time has come, but that has not polled, gives up, or another
// one does, or a turn is given back: those behind lose no time.
func TestDueWaitersPassBeforeAWaiterLeaves(t *testing.T) {
	t.Parallel()
	rules := map[string]flow.Rule{"throttle": throttle(1, time.Hour), "bucket": patient(bucket(1, 1), time.Hour)}
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := func() *testQueue {
				l := newTestQueue(t, r)
				l.call(5) // they pass at 0, 1, 2, 3 and 4 s
				l.now = epoch.Add(2500 * time.Millisecond)
				return l
			}
			passAt := func(l *testQueue, id int) time.Duration {
				turn, until, decision := l.queue.Poll(l.now, l.waiting[id-1].waiter)
				if decision == rule.Pass {
					return turn.Time().Sub(epoch)
				}
				return l.now.Add(until).Sub(epoch)
			}
			t.Run("the first", func(t *testing.T) {
				t.Parallel()
				l := start()
				turn, left := l.queue.Leave(l.now, l.waiting[0].waiter)
				assert.False(t, left, "it could pass at 1 s")
				assert.Equal(t, epoch.Add(time.Second), turn.Time())
				assert.Equal(t, 2*time.Second, passAt(l, 2))
				assert.Equal(t, 3*time.Second, passAt(l, 3))
			})
			t.Run("the second", func(t *testing.T) {
				t.Parallel()
				l := start()
				_, left := l.queue.Leave(l.now, l.waiting[1].waiter)
				assert.False(t, left)
				assert.Equal(t, time.Second, passAt(l, 1))
				assert.Equal(t, 3*time.Second, passAt(l, 3))
			})
			t.Run("the third, whose time is still to come", func(t *testing.T) {
				t.Parallel()
				l := start()
				_, left := l.queue.Leave(l.now, l.waiting[2].waiter)
				assert.True(t, left)
				assert.Equal(t, 2*time.Second, passAt(l, 2))
				assert.Equal(t, 3*time.Second, passAt(l, 4), "it moves up")
			})
			t.Run("a turn is given back", func(t *testing.T) {
				t.Parallel()
				l := start()
				l.queue.GiveBack(l.now, l.passes[0].turn)
				assert.Equal(t, time.Second, passAt(l, 1))
				assert.Equal(t, 2*time.Second, passAt(l, 2))
			})
		})
	}
}
