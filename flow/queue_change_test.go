package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

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
			l := newTestQueue(t, throttle(1, time.Hour))
			l.call(5)
			l.moveTo(test.at)
			l.change(test.change)
			l.moveTo(time.Hour)
			want := make([]time.Duration, len(test.times))
			for i, at := range test.times {
				want[i] = seconds(at)
			}
			assert.Equal(t, want, l.times())
			assert.NoError(t, l.queue.CheckWaiters(0), "nobody hangs")
		})
	}
}

func TestQueueKeepsItsLastPassOverAChangedRule(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, throttle(1, time.Minute))
	l.arrive(1)
	l.moveTo(100 * time.Millisecond)
	l.change(func(r *flow.Rule) { r.Limit = 2 })
	l.arrive(1)
	l.moveTo(time.Second)
	assert.Equal(t, []time.Duration{0, 500 * time.Millisecond}, l.times())
}

func TestQueueAnswersAnOlderVersionWithStale(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, throttle(1, time.Minute))
	old := l.compiled
	l.change(func(r *flow.Rule) { r.Limit = 100 })
	_, decision := l.queue.Take(old, l.now, 1)
	assert.Equal(t, rule.Stale, decision)
	_, decision = l.queue.Join(old, l.now, 1, time.Minute, unwoken())
	assert.Equal(t, rule.Stale, decision)
	l.queue.Adopt(old, l.now)
	l.call(3)
	l.moveTo(time.Second)
	assert.Equal(t, every(10*time.Millisecond, 3), l.times(), "by the newer version")
}

func TestQueueAdoptsANewerVersionWithACall(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, throttle(1, time.Minute))
	newer := compile(t, throttle(100, time.Minute), 2)
	_, decision := l.queue.Take(newer, l.now, 1)
	assert.Equal(t, rule.Pass, decision)
	_, decision = l.queue.Take(l.compiled, l.now, 1)
	assert.Equal(t, rule.Stale, decision)
}

func TestRetiredQueueReleasesItsWaiters(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, throttle(1, time.Minute))
	l.call(4)
	l.queue.Retire()
	for _, c := range l.waiting {
		assert.Len(t, c.woken, 1, "woken")
		_, _, decision := l.queue.Poll(l.now, c.waiter)
		assert.Equal(t, rule.Stale, decision)
		_, left := l.queue.Leave(l.now, c.waiter)
		assert.True(t, left, "there is no turn to give back")
	}
	assert.NoError(t, l.queue.CheckWaiters(0))
	_, decision := l.queue.Take(l.compiled, l.now, 1)
	assert.Equal(t, rule.Stale, decision)
	newer := compile(t, throttle(100, time.Minute), 9)
	_, decision = l.queue.Join(newer, l.now, 1, time.Minute, unwoken())
	assert.Equal(t, rule.Wait, decision, "the rule has come back")
}
