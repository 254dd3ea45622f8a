package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

func TestBucketPassesTheBurstAndThenItsRate(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, patient(bucket(10, 3), time.Second))
	l.call(20)
	l.moveTo(time.Minute)
	want := append([]time.Duration{0, 0, 0}, every(100*time.Millisecond, 11)[1:]...)
	assert.Equal(t, want, l.times(), "those that would wait longer than they may are refused")
	assert.IsIncreasing(t, l.ids())
}

func TestBucketDoesNotLetSmallCallsOvertake(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, patient(bucket(10, 5), time.Minute))
	l.arrive(3)
	l.arrive(5)
	l.arrive(1)
	l.moveTo(time.Minute)
	assert.Equal(t, []time.Duration{0, 300 * time.Millisecond, 400 * time.Millisecond}, l.times())
	assert.IsIncreasing(t, l.ids())
}

func TestOverdraftDelaysTheCallsBehind(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, patient(overdraft(10, 3), time.Minute))
	for _, n := range []int32{10, 20, 1, 1} {
		l.arrive(n)
	}
	l.moveTo(time.Minute)
	assert.Equal(t, []time.Duration{0, seconds(0.7), seconds(2.7), seconds(2.8)}, l.times())
}

func TestBucketKeepsItsRateWithWaiters(t *testing.T) {
	t.Parallel()
	for _, limit := range []float64{3, 333.3, 7000} {
		l := newTestQueue(t, patient(bucket(limit, 1), flow.MaxMaxWait))
		const calls = 5000
		l.call(calls)
		l.moveTo(time.Hour)
		last := l.times()[calls-1]
		assert.InDelta(t, (calls-1)/limit, last.Seconds(), 2e-9, "limit %v", limit)
	}
}

func TestBucketCancelledWaits(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		weights []int32
		at      time.Duration
		cancel  []int
		ids     []int
		times   []float64 // seconds
	}{
		"the first: all move up":  {[]int32{5, 1, 1, 1}, 0, []int{1}, []int{0, 2, 3}, []float64{0, 1, 2}},
		"one in the middle":       {[]int32{5, 1, 1, 1}, 0, []int{2}, []int{0, 1, 3}, []float64{0, 1, 2}},
		"all":                     {[]int32{5, 1, 1, 1}, 0, []int{2, 3, 1}, []int{0}, []float64{0}},
		"a heavy one":             {[]int32{5, 5, 1, 1}, 0, []int{1}, []int{0, 2, 3}, []float64{0, 1, 2}},
		"a heavy one that waited": {[]int32{5, 5, 1, 1, 1}, 2500 * time.Millisecond, []int{1}, []int{0, 2, 3, 4}, []float64{0, 2.5, 2.5, 3}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTestQueue(t, patient(bucket(1, 5), time.Minute))
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

func TestBucketGiveBack(t *testing.T) {
	t.Parallel()
	room := func(l *testQueue) int64 {
		_, remaining, _ := l.queue.Status(l.now)
		return remaining
	}
	t.Run("the next comer takes the tokens", func(t *testing.T) {
		t.Parallel()
		l := newTestQueue(t, bucket(1, 5))
		l.arrive(5)
		l.giveBackLast()
		assert.Equal(t, rule.Pass, l.arrive(5))
		assert.Equal(t, rule.Block, l.arrive(1))
	})
	t.Run("also when others have taken since", func(t *testing.T) {
		t.Parallel()
		l := newTestQueue(t, bucket(1, 5))
		l.arrive(3)
		l.arrive(2)
		l.queue.GiveBack(l.now, l.passes[0].turn)
		assert.Equal(t, int64(3), room(l))
	})
	t.Run("no more than the bucket holds", func(t *testing.T) {
		t.Parallel()
		l := newTestQueue(t, bucket(1, 5))
		l.arrive(5)
		l.moveTo(3 * time.Second)
		l.giveBackLast()
		assert.Equal(t, int64(5), room(l))
		assert.Equal(t, rule.Pass, l.arrive(5))
		assert.Equal(t, rule.Block, l.arrive(1))
	})
	t.Run("not what would have flowed over", func(t *testing.T) {
		t.Parallel()
		l := newTestQueue(t, bucket(1, 5))
		l.arrive(5)
		l.moveTo(10 * time.Second)
		l.arrive(5)
		l.queue.GiveBack(l.now, l.passes[0].turn)
		assert.Zero(t, room(l), "five have passed in this instant")
	})
	t.Run("those who wait move up", func(t *testing.T) {
		t.Parallel()
		l := newTestQueue(t, patient(bucket(1, 5), time.Minute))
		l.arrive(3)
		l.arrive(2)
		l.call(4)
		l.moveTo(500 * time.Millisecond)
		l.queue.GiveBack(l.now, l.passes[0].turn)
		l.moveTo(time.Minute)
		assert.Equal(t, []int{0, 1, 2, 3, 4, 5}, l.ids())
		assert.Equal(t, []time.Duration{0, 0, seconds(0.5), seconds(0.5), seconds(0.5), seconds(1)}, l.times())
	})
	t.Run("overdraft: the debt is gone", func(t *testing.T) {
		t.Parallel()
		l := newTestQueue(t, overdraft(1, 5))
		l.arrive(100)
		assert.Equal(t, rule.Block, l.arrive(1))
		l.giveBackLast()
		assert.Equal(t, int64(6), room(l))
	})
}
