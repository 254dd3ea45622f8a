package flow_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

func TestBucketPassesItsTokensToManyGoroutinesExactly(t *testing.T) {
	t.Parallel()
	const callers, burst = 64, 1000
	for name, r := range map[string]flow.Rule{"plain": bucket(100, burst), "overdraft": overdraft(100, burst)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compiled := compile(t, r, 1)
			q := flow.NewQueue(compiled, epoch)
			want := burst
			if r.Overdraft {
				want++ // the one that goes into debt
			}
			for second := range 20 {
				now := epoch.Add(time.Duration(second) * time.Second)
				var taken atomic.Int64
				var calling sync.WaitGroup
				for c := range callers {
					calling.Go(func() {
						for i := range 40 {
							turn, decision := q.Take(compiled, now, 1)
							switch {
							case decision != rule.Pass:
							case (c+i)%4 == 0:
								q.GiveBack(now, turn)
							default:
								taken.Add(1)
							}
						}
					})
				}
				calling.Wait()
				for decision := rule.Pass; decision == rule.Pass; { // what was given back
					if _, decision = q.Take(compiled, now, 1); decision == rule.Pass {
						taken.Add(1)
					}
				}
				assert.Equal(t, int64(want), taken.Load(), "second %d", second)
				want = 100 // in a second
			}
		})
	}
}

// Many goroutines move the time on themselves, so that instants come in any
// order: what has passed in the end is what the rule allows.
func TestBucketHoldsItsLimitWhateverTheInterleaving(t *testing.T) {
	t.Parallel()
	const callers, calls, limit, burst = 64, 400, 10_000, 50
	compiled := compile(t, bucket(limit, burst), 1)
	q := flow.NewQueue(compiled, epoch)
	var now, passed atomic.Int64
	var calling sync.WaitGroup
	for range callers {
		calling.Go(func() {
			for range calls {
				at := epoch.Add(time.Duration(now.Add(int64(20 * time.Microsecond))))
				if _, decision := q.Take(compiled, at, 1); decision == rule.Pass {
					passed.Add(1)
				}
			}
		})
	}
	calling.Wait()
	want := burst + limit*time.Duration(now.Load()).Seconds()
	assert.LessOrEqual(t, float64(passed.Load()), want)
	assert.Greater(t, float64(passed.Load()), want-burst-1, "nothing is lost: it never was full again")
}

func TestBucketServesGoroutinesInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const callers, spacing = 200, 10 * time.Millisecond
		c := clock.System()
		compiled := compile(t, patient(bucket(100, 10), time.Hour), 1)
		q := flow.NewQueue(compiled, c.Now())
		start := c.Now()
		went := make([]time.Duration, callers)
		var calling sync.WaitGroup
		for i := range callers {
			calling.Go(func() {
				_, ok := await(t.Context(), c, q, compiled)
				assert.True(t, ok)
				went[i] = c.Now().Sub(start)
			})
			synctest.Wait() // they come one after the other
		}
		calling.Wait()
		assert.Equal(t, make([]time.Duration, 10), went[:10], "the burst")
		assert.Equal(t, every(spacing, callers-9)[1:], went[10:])
	})
}

// Waiting, giving up, giving back and reloads of every kind at once: nobody
// hangs, and in the end the bucket is sound.
func TestBucketSurvivesReloadsUnderLoad(t *testing.T) {
	t.Parallel()
	const callers, calls = 32, 60
	j := &jostle{}
	j.now.Store(int64(epoch))
	j.compiled.Store(compile(t, patient(bucket(1000, 10), time.Hour), 1))
	j.queue = flow.NewQueue(j.compiled.Load(), epoch)
	var calling, reloading sync.WaitGroup
	var done atomic.Bool
	version := uint64(1)
	reloading.Go(func() {
		for !done.Load() {
			version++
			r := patient(bucket(float64(version%4)*1000, 0), time.Hour)
			r.Overdraft = version%2 == 0
			r.WarmUp.Period = time.Duration(version%3) * time.Second
			r.Shadow = version%5 == 0
			j.compiled.Store(compile(t, r, version))
			j.queue.Adopt(j.compiled.Load(), j.time())
			j.queue.Status(j.time())
			j.queue.RetryAfter(j.time(), 1, time.Second)
			j.queue.Idle(j.time())
		}
	})
	for c := range callers {
		calling.Go(func() {
			for i := range calls {
				j.call(c + i)
			}
		})
	}
	calling.Wait()
	done.Store(true)
	reloading.Wait()
	require.NoError(t, j.queue.CheckWaiters(0))

	compiled := compile(t, bucket(10, 5), version+1)
	now := j.time().Add(24 * 365 * time.Hour) // whatever was owed
	var passed int
	for decision := rule.Pass; decision == rule.Pass; passed++ {
		_, decision = j.queue.Take(compiled, now, 1)
	}
	assert.LessOrEqual(t, passed-1, 5)
	now = now.Add(time.Hour)
	_, decision := j.queue.Take(compiled, now, 5)
	assert.Equal(t, rule.Pass, decision)
	_, decision = j.queue.Take(compiled, now, 1)
	assert.Equal(t, rule.Block, decision)
}
