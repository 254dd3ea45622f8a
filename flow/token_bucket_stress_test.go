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
)

func TestBucketPassesItsTokensToManyGoroutinesExactly(t *testing.T) {
	t.Parallel()
	const callers, burst = 64, 1000
	for name, rule := range map[string]flow.Rule{"plain": bucket(100, burst), "overdraft": overdraft(100, burst)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			terms := compile(t, rule, 1)
			q := flow.NewQueue(terms, epoch)
			want := burst
			if rule.Overdraft {
				want++ // the one that goes into debt
			}
			for second := range 20 {
				now := epoch.Add(time.Duration(second) * time.Second)
				var taken atomic.Int64
				var calling sync.WaitGroup
				for c := range callers {
					calling.Go(func() {
						for i := range 40 {
							ticket, decision := q.Take(terms, now, 1)
							switch {
							case decision != flow.Passed:
							case (c+i)%4 == 0:
								q.GiveBack(now, ticket)
							default:
								taken.Add(1)
							}
						}
					})
				}
				calling.Wait()
				for decision := flow.Passed; decision == flow.Passed; { // what was given back
					if _, decision = q.Take(terms, now, 1); decision == flow.Passed {
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
func TestBucketHoldsItsCeilingWhateverTheInterleaving(t *testing.T) {
	t.Parallel()
	const callers, calls, limit, burst = 64, 400, 10_000, 50
	terms := compile(t, bucket(limit, burst), 1)
	q := flow.NewQueue(terms, epoch)
	var now, passed atomic.Int64
	var calling sync.WaitGroup
	for range callers {
		calling.Go(func() {
			for range calls {
				at := epoch.Add(time.Duration(now.Add(int64(20 * time.Microsecond))))
				if _, decision := q.Take(terms, at, 1); decision == flow.Passed {
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

func TestBucketOfGoroutinesGoesInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const callers, spacing = 200, 10 * time.Millisecond
		c := clock.System()
		terms := compile(t, patient(bucket(100, 10), time.Hour), 1)
		q := flow.NewQueue(terms, c.Now())
		start := c.Now()
		went := make([]time.Duration, callers)
		var calling sync.WaitGroup
		for i := range callers {
			calling.Go(func() {
				_, ok := await(t.Context(), c, q, terms)
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
	j.terms.Store(compile(t, patient(bucket(1000, 10), time.Hour), 1))
	j.queue = flow.NewQueue(j.terms.Load(), epoch)
	var calling, reloading sync.WaitGroup
	var done atomic.Bool
	version := uint64(1)
	reloading.Go(func() {
		for !done.Load() {
			version++
			rule := patient(bucket(float64(version%4)*1000, 0), time.Hour)
			rule.Overdraft = version%2 == 0
			rule.WarmUp.Period = time.Duration(version%3) * time.Second
			rule.Shadow = version%5 == 0
			j.terms.Store(compile(t, rule, version))
			j.queue.Adopt(j.terms.Load(), j.time())
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
	require.NoError(t, j.queue.CheckLine(0))

	terms := compile(t, bucket(10, 5), version+1)
	now := j.time().Add(24 * 365 * time.Hour) // whatever was owed
	var passed int
	for decision := flow.Passed; decision == flow.Passed; passed++ {
		_, decision = j.queue.Take(terms, now, 1)
	}
	assert.LessOrEqual(t, passed-1, 5)
	now = now.Add(time.Hour)
	_, decision := j.queue.Take(terms, now, 5)
	assert.Equal(t, flow.Passed, decision)
	_, decision = j.queue.Take(terms, now, 1)
	assert.Equal(t, flow.Refused, decision)
}
