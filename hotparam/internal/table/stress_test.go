package table

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
)

const stressCallers = 64

// together runs callers at the same time.
func together(call func(caller int)) {
	var group sync.WaitGroup
	for c := range stressCallers {
		group.Go(func() { call(c) })
	}
	group.Wait()
}

// Many goroutines take from the same values. Each value gets exactly its limit, no more and
// no less, whether it came first or not.
func TestEachValueGetsExactlyItsLimit(t *testing.T) {
	const values, limit = 100, 50
	rates := mustCompile(1, TokenBucket, perSecond(1, limit))
	buckets := NewBuckets(1000, rates)
	throttles := mustCompile(1, Throttle, Limit{Limit: 10, Window: time.Second, MaxWait: 4900 * time.Millisecond})
	turns := NewBuckets(1000, throttles)
	terms := CompileWindow(1, time.Second)
	windows := NewWindows(1000, terms)
	for name, take := range map[string]func(hash uint64) Outcome{
		"token bucket": func(hash uint64) Outcome { return first(buckets.Take(hash, rates.Class(0), start, 1)) },
		"throttle": func(hash uint64) Outcome {
			_, _, outcome := turns.Reserve(hash, throttles.Class(0), start, 1)
			return outcome
		},
		"window": func(hash uint64) Outcome { return first(windows.Take(hash, terms, limit, start, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			var passed [values]atomic.Int64
			together(func(caller int) {
				random := rand.New(rand.NewPCG(uint64(caller), 0))
				for range values * limit / 16 {
					v := random.IntN(values)
					if take(hashOf(uint64(v))) == Taken {
						passed[v].Add(1)
					}
				}
			})
			for v := range passed {
				for take(hashOf(uint64(v))) == Taken {
					passed[v].Add(1)
				}
				require.Equal(t, int64(limit), passed[v].Load(), "value %d", v)
			}
		})
	}
}

// Turns of a throttle are all different.
func TestTurnsOfAThrottleKeepTheirDistance(t *testing.T) {
	rates := mustCompile(1, Throttle, Limit{Limit: 1000, Window: time.Second, MaxWait: time.Hour})
	b := NewBuckets(100, rates)
	const calls = 100
	var seen [stressCallers * calls]atomic.Bool
	together(func(int) {
		for range calls {
			_, at, outcome := b.Reserve(hashOf(1), rates.Class(0), start, 1)
			assert.Equal(t, Taken, outcome)
			turn := at.Sub(start)
			assert.Zero(t, turn%time.Millisecond)
			assert.False(t, seen[turn/time.Millisecond].Swap(true))
		}
	})
}

// There are more values than slots, and time goes on. No value gets more than its burst
// and what has flowed in.
func TestValuesWithoutSlotGetNoMoreThanTheirLimit(t *testing.T) {
	const values, burst = 300, 20
	rates := mustCompile(1, TokenBucket, perSecond(1, burst))
	b := NewBuckets(100, rates)
	terms := CompileWindow(1, time.Minute)
	w := NewWindows(100, terms)
	var now atomic.Int64
	now.Store(int64(start))
	var passed, counted [values]atomic.Int64
	together(func(caller int) {
		random := rand.New(rand.NewPCG(uint64(caller), 1))
		for i := range 1500 {
			v := random.IntN(values)
			at := clock.Instant(now.Load())
			if i%100 == 0 && caller == 0 {
				now.Add(int64(200 * time.Millisecond))
			}
			if p, outcome := b.Take(hashOf(uint64(v)), rates.Class(0), at, 1); outcome == Taken {
				passed[v].Add(1)
				if _, yes := p.withoutSlot(); !yes && random.IntN(10) == 0 {
					passed[v].Add(-1)
					b.GiveBack(p, at, 1)
				}
			}
			if first(w.Take(hashOf(uint64(v)), terms, burst, at, 1)) == Taken {
				counted[v].Add(1)
			}
		}
	})
	for v := range passed {
		assert.LessOrEqual(t, passed[v].Load(), int64(burst+3))
		assert.LessOrEqual(t, counted[v].Load(), int64(burst))
	}
	assert.NotZero(t, b.Stats(clock.Instant(now.Load())).WithoutSlot)
	assert.NotZero(t, w.Stats(clock.Instant(now.Load())).WithoutSlot)
}

// Calls come and go for more values than there are slots, while the table is replaced by
// others. No value ever has more calls under way than its limit.
func TestNoValueHasMoreCallsUnderWayThanItsLimit(t *testing.T) {
	for name, values := range map[string]int{"values fit": 100, "too many values": 2000} {
		t.Run(name, func(t *testing.T) {
			const limit = 3
			type inForce struct {
				table   *Concurrency
				version uint64
			}
			var present atomic.Pointer[inForce]
			present.Store(&inForce{NewConcurrency(150, 1), 1})
			underWay := make([]atomic.Int64, values)
			together(func(caller int) {
				type call struct {
					table *Concurrency
					place Place
					value int
				}
				var mine []call
				random := rand.New(rand.NewPCG(uint64(caller), 2))
				for i := range 1000 {
					if caller == 0 && i%100 == 99 {
						next := present.Load()
						next = &inForce{next.table.Adopt(150+i, 0), next.version + 1}
						next.table.Activate(next.version)
						present.Store(next)
					}
					if len(mine) > 20 || len(mine) > 0 && random.IntN(2) == 0 {
						last := len(mine) - 1
						underWay[mine[last].value].Add(-1)
						mine[last].table.Release(mine[last].place)
						mine = mine[:last]
						continue
					}
					v, p := random.IntN(values), present.Load()
					if place, outcome := p.table.Acquire(hashOf(uint64(v)), p.version, limit, NoSource); outcome == Taken {
						assert.LessOrEqual(t, underWay[v].Add(1), int64(limit))
						mine = append(mine, call{p.table, place, v})
					}
				}
				for _, left := range mine {
					underWay[left.value].Add(-1)
					left.table.Release(left.place)
				}
			})
			last := present.Load()
			assert.Zero(t, last.table.Stats().Occupied)
			for v := range values { // nothing is left behind
				for range limit {
					_, outcome := last.table.Acquire(hashOf(uint64(v)), last.version, limit, NoSource)
					if values < 150 {
						assert.Equal(t, Taken, outcome)
					}
				}
			}
		})
	}
}
