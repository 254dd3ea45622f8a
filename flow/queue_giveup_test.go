package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/rule"
)

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
			l := newTestQueue(t, throttle(1, time.Minute))
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
				assert.Equal(t, seconds(at), l.times()[i], "pass %d", i)
			}
			assert.NoError(t, l.queue.CheckWaiters(0))
		})
	}
}

func TestWaiterCancelledTooLateHasItsTurn(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, throttle(1, time.Minute))
	l.call(3)
	l.now = epoch.Add(time.Second)
	_, decision := l.queue.Take(l.compiled, l.now, 1)
	assert.Equal(t, rule.Wait, decision)

	turn, left := l.queue.Leave(l.now, l.waiting[0].waiter)
	assert.False(t, left, "its time had come before")
	assert.Equal(t, epoch.Add(time.Second), turn.Time())
	l.queue.GiveBack(l.now, turn)
	l.waiting = l.waiting[1:]
	l.moveTo(time.Minute)
	assert.Equal(t, []time.Duration{0, time.Second}, l.times(), "the one behind took it")
}

func TestQueueGiveBack(t *testing.T) {
	t.Parallel()
	t.Run("the next call takes its place", func(t *testing.T) {
		t.Parallel()
		l := newTestQueue(t, throttle(1, 0))
		l.arrive(1)
		l.giveBackLast()
		assert.Equal(t, rule.Pass, l.arrive(1))
		assert.Equal(t, rule.Block, l.arrive(1), "but only once")
	})
	t.Run("those behind move up", func(t *testing.T) {
		t.Parallel()
		l := newTestQueue(t, throttle(1, time.Minute))
		l.call(4)
		l.giveBackLast()
		l.moveTo(time.Minute)
		assert.Equal(t, []int{1, 2, 3}, l.ids())
		assert.Equal(t, every(time.Second, 3), l.times())
	})
	t.Run("late: never closer than their spacing", func(t *testing.T) {
		t.Parallel()
		l := newTestQueue(t, throttle(1, time.Minute))
		l.call(5)
		l.moveTo(1400 * time.Millisecond)
		l.giveBackLast()
		l.moveTo(time.Minute)
		assert.Equal(t, []int{0, 2, 3, 4}, l.ids())
		assert.Equal(t, []time.Duration{0, seconds(1.4), seconds(2.4), seconds(3.4)}, l.times())
	})
	t.Run("of a heavy call", func(t *testing.T) {
		t.Parallel()
		l := newTestQueue(t, throttle(1, time.Minute))
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
		l := newTestQueue(t, throttle(1, time.Minute))
		l.call(3)
		l.moveTo(2 * time.Second)
		l.giveBackLast()
		l.giveBackLast()
		assert.Equal(t, rule.Pass, l.arrive(1))
		assert.Equal(t, rule.Wait, l.arrive(1))
	})
	t.Run("not once a later turn was granted", func(t *testing.T) {
		t.Parallel()
		l := newTestQueue(t, throttle(1, time.Minute))
		l.call(3)
		l.moveTo(time.Second)
		l.queue.GiveBack(l.now, l.passes[0].turn)
		l.moveTo(time.Minute)
		assert.Equal(t, every(time.Second, 3), l.times())
	})
}
