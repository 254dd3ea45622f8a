package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

func TestBucketKeepsItsShareOverAChangedRule(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		rule   flow.Rule
		take   int32
		change func(r *flow.Rule)
		room   int64
	}{
		"twice the burst":         {bucket(10, 10), 4, func(r *flow.Rule) { r.Burst = 20 }, 6},
		"half the burst":          {bucket(10, 10), 4, func(r *flow.Rule) { r.Burst = 5 }, 3},
		"no more than time gave":  {bucket(10, 10), 0, func(r *flow.Rule) { r.Burst = 20 }, 10},
		"empty stays empty":       {bucket(10, 10), 10, func(r *flow.Rule) { r.Burst = 20 }, 0},
		"another limit":           {bucket(10, 10), 4, func(r *flow.Rule) { r.Limit = 1000 }, 6},
		"another window":          {bucket(10, 10), 4, func(r *flow.Rule) { r.Window = time.Minute }, 6},
		"patience":                {bucket(10, 10), 4, func(r *flow.Rule) { r.MaxWait = time.Second }, 16},
		"overdraft":               {bucket(10, 10), 4, func(r *flow.Rule) { r.Overdraft = true }, 7},
		"nothing":                 {bucket(10, 10), 4, func(r *flow.Rule) { r.Limit = 0 }, 0},
		"what is owed stays owed": {overdraft(10, 10), 15, func(r *flow.Rule) { r.Burst, r.MaxWait = 100, time.Second }, 6},
		"what is owed takes time": {overdraft(10, 10), 15, func(r *flow.Rule) { r.Burst, r.WarmUp.Period = 0, time.Minute }, 0},
		"cold":                    {bucket(10, 10), 0, func(r *flow.Rule) { r.Burst, r.WarmUp.Period = 0, time.Minute }, 1},
		"warm":                    {bucket(10, 10), 10, func(r *flow.Rule) { r.Burst, r.WarmUp.Period = 0, time.Minute }, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTestQueue(t, test.rule)
			if test.take > 0 {
				l.arrive(test.take)
			}
			l.change(test.change)
			_, remaining, _ := l.queue.Status(l.now)
			assert.Equal(t, test.room, remaining)
		})
	}
}

func TestBucketUnderAChangedRule(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		at     time.Duration
		change func(r *flow.Rule)
		times  []float64 // of five calls of one token at time 0, at first 1 per second with a burst of 1
	}{
		"half the limit":     {500 * time.Millisecond, func(r *flow.Rule) { r.Limit = 0.5 }, []float64{0, 1.5, 3.5, 5.5, 7.5}},
		"twice the limit":    {500 * time.Millisecond, func(r *flow.Rule) { r.Limit = 2 }, []float64{0, 0.75, 1.25, 1.75, 2.25}},
		"nothing changes":    {1500 * time.Millisecond, func(*flow.Rule) {}, []float64{0, 1, 2, 3, 4}},
		"nothing is allowed": {1500 * time.Millisecond, func(r *flow.Rule) { r.Limit = 0 }, []float64{0, 1}},
		"less patience":      {0, func(r *flow.Rule) { r.MaxWait = 2500 * time.Millisecond }, []float64{0, 1, 2}},
		"warm-up":            {0, func(r *flow.Rule) { r.Burst, r.WarmUp.Period = 0, time.Second }, []float64{0, 0, 1, 2, 3}},
		"a shadow":           {500 * time.Millisecond, func(r *flow.Rule) { r.Shadow = true }, []float64{0, 0.5, 0.5, 0.5, 0.5}},
		"a shadow of nothing": {
			500 * time.Millisecond, func(r *flow.Rule) { r.Shadow, r.Limit = true, 0 },
			[]float64{0, 0.5, 0.5, 0.5, 0.5},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTestQueue(t, patient(bucket(1, 1), time.Hour))
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

// A call that waits for more than the new bucket holds will never go.
func TestLoweredBurstRefusesWaitersThatNeedMore(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, patient(bucket(1, 10), time.Hour))
	l.arrive(10)
	l.arrive(8)
	l.arrive(2)
	l.change(func(r *flow.Rule) { r.Burst = 5 })
	l.moveTo(time.Minute)
	assert.Equal(t, []int{0, 2}, l.ids())
	assert.NoError(t, l.queue.CheckWaiters(0))
}

func TestBucketStaysAsWarmAsItWas(t *testing.T) {
	t.Parallel()
	rule := patient(bucket(5, 0), time.Hour)
	rule.WarmUp.Period = 1500 * time.Millisecond
	limit := func(l *testQueue) float64 {
		limit, _, _ := l.queue.Status(l.now)
		return limit
	}
	l := newTestQueue(t, rule)
	assert.InDelta(t, 5.0/3, limit(l), 1e-9)
	l.call(2)
	l.moveTo(600 * time.Millisecond)
	half := limit(l)
	assert.Greater(t, half, 2.0)
	l.change(func(r *flow.Rule) { r.Limit = 500 })
	assert.InDelta(t, 100*half, limit(l), 1e-6, "the share of stored tokens is kept")
	l.change(func(r *flow.Rule) { r.WarmUp.Period = time.Hour })
	assert.InDelta(t, 100*half, limit(l), 1e-6)
	l.change(func(r *flow.Rule) { r.Limit = 5; r.WarmUp = flow.WarmUp{}; r.MaxWait = 0 })
	_, remaining, _ := l.queue.Status(l.now)
	assert.Zero(t, remaining, "what was owed is owed in tokens")
}

func TestBucketKeepsItsNextFreeInstantOverAChangedWarmUp(t *testing.T) {
	t.Parallel()
	rule := patient(bucket(5, 0), time.Hour)
	rule.WarmUp.Period = 1500 * time.Millisecond
	l := newTestQueue(t, rule)
	l.call(2)
	_, until, _ := l.queue.Poll(l.now, l.waiting[0].waiter)
	l.change(func(r *flow.Rule) { r.Limit = 1000 })
	_, still, _ := l.queue.Poll(l.now, l.waiting[0].waiter)
	assert.InDelta(t, until, still, 1)
}

func TestBucketKnowsOverAChangedRuleThatItWasFull(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, bucket(1, 5))
	l.arrive(5)
	l.moveTo(10 * time.Second)
	l.arrive(5)
	l.change(func(r *flow.Rule) { r.Limit = 2 })
	l.queue.GiveBack(l.now, l.passes[0].turn)
	assert.Equal(t, rule.Block, l.arrive(1), "it would have flowed over")
	l.queue.GiveBack(l.now, l.passes[1].turn)
	assert.Equal(t, rule.Pass, l.arrive(5))
}
