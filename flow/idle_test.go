package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
)

func TestQueueIsIdleWhenANewOneWouldBeTheSame(t *testing.T) {
	t.Parallel()
	for name, rule := range queues(time.Minute) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTestQueue(t, rule)
			assert.True(t, l.queue.Idle(l.now))
			l.arrive(1)
			assert.False(t, l.queue.Idle(l.now))
			l.arrive(5)
			l.moveTo(100 * time.Millisecond)
			assert.False(t, l.queue.Idle(l.now), "someone waits, or it is not full again")
			l.moveTo(10 * time.Minute)
			assert.True(t, l.queue.Idle(l.now))
			assert.True(t, l.queue.Idle(l.now), "asking changes nothing")
		})
	}
	assert.True(t, newTestQueue(t, bucket(0, 0)).queue.Idle(epoch))
	assert.True(t, newTestQueue(t, throttle(0, 0)).queue.Idle(epoch))
}

// A call of several tokens keeps as many times the distance: the last pass must not
// be forgotten when that of a single one is over.
func TestThrottleIsNotIdleBeforeItsWindowIsOver(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, throttle(10, 0))
	l.arrive(1)
	l.moveTo(time.Second - 1)
	assert.False(t, l.queue.Idle(l.now))
	l.moveTo(time.Second)
	assert.True(t, l.queue.Idle(l.now))
}

func TestWindowIsIdleWhenANewOneWouldBeTheSame(t *testing.T) {
	t.Parallel()
	warm := reject(10)
	warm.WarmUp.Period = 10 * time.Second
	for name, test := range map[string]struct {
		rule flow.Rule
		idle time.Duration // after this time, and not before
	}{
		"sliding":    {reject(5), time.Second},
		"fixed":      {fixed(5, time.Minute), time.Minute},
		"fractional": {reject(0.1), 10 * time.Second},
		"warming up": {warm, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t, test.rule)
			assert.True(t, g.window.Idle(g.now))
			assert.Equal(t, 1, g.pass(1))
			assert.False(t, g.window.Idle(g.now))
			g.moveTo(test.idle - 1)
			assert.False(t, g.window.Idle(g.now))
			g.moveTo(test.idle + 5*time.Second)
			assert.True(t, g.window.Idle(g.now))
		})
	}
}
