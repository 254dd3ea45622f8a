package table

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
)

// What a value has used stays used over changes of limits, classes and size: a table
// decides as exact arithmetic does that counts missing tokens.
func TestMissingTokensStayMissingWhenTheRateChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := []Limit{perSecond(10, 10), perSecond(1, 5), perSecond(100, 20), {Limit: 5, Window: 5 * time.Second, Burst: 2}, perSecond(0, 3)}
		draw := func() []Limit {
			classes := make([]Limit, 3)
			for i := range classes {
				classes[i] = rapid.SampledFrom(limits).Draw(t, "limit")
			}
			return classes
		}
		classes := draw()
		version, size, now := uint64(1), 200, start
		rates := mustCompile(version, TokenBucket, classes...)
		b := NewBuckets(size, rates)
		values := make([]reference, 3) // one of each class
		for i := range values {
			values[i].limit = classes[i]
			values[i].flow(now)
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "step") > 0 {
				now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "pause")))
				v, tokens := rapid.IntRange(0, 2).Draw(t, "value"), rapid.Int32Range(1, 3).Draw(t, "tokens")
				require.Equal(t, values[v].take(now, tokens), first(b.Take(hashOf(uint64(v)), rates.Class(v), now, tokens)) == Taken)
				continue
			}
			old, before := rates, b
			classes = draw()
			version++
			rates = mustCompile(version, TokenBucket, classes...)
			require.True(t, rates.Exact())
			if rapid.Bool().Draw(t, "resize") {
				size += 50
			}
			b = b.Adopt(size, now)
			if rapid.Bool().Draw(t, "activate") {
				b.Activate(rates, now)
			}
			for v := range values {
				values[v].flow(now)
				for class, limit := range classes { // also if its class changes
					if limit.Limit > 0 {
						missing, _ := values[v].missing.Float64()
						require.InDelta(t, limit.Burst-missing, b.Remaining(hashOf(uint64(v)), rates.Class(class), now), 1e-6)
					}
				}
				values[v].limit = classes[v]
			}
			b.Activate(rates, now)
			if old.Class(0).most > 0 {
				require.Equal(t, Stale, first(before.Take(hashOf(0), old.Class(0), now, 1)))
			}
		}
	})
}

func first(_ Place, o Outcome) Outcome { return o }

func TestThrottleKeepsItsLastPassWhenTheRateChanges(t *testing.T) {
	r1 := mustCompile(1, Throttle, Limit{Limit: 10, Window: time.Second, MaxWait: time.Second})
	b := NewBuckets(100, r1)
	_, at, outcome := b.Reserve(hashOf(1), r1.Class(0), start, 1)
	require.Equal(t, Taken, outcome)
	require.Equal(t, start, at)
	_, at, _ = b.Reserve(hashOf(1), r1.Class(0), start, 1)
	require.Equal(t, start.Add(100*time.Millisecond), at)

	r2 := mustCompile(2, Throttle, Limit{Limit: 2, Window: time.Second, MaxWait: time.Second})
	b.Activate(r2, start)
	_, at, outcome = b.Reserve(hashOf(1), r2.Class(0), start, 1)
	require.Equal(t, Taken, outcome)
	require.Equal(t, start.Add(600*time.Millisecond), at, "half a second after the last pass")

	larger := b.Adopt(1000, start)
	r3 := mustCompile(3, Throttle, Limit{Limit: 5, Window: time.Second, MaxWait: time.Second})
	_, at, outcome = larger.Reserve(hashOf(1), r3.Class(0), start, 1)
	require.Equal(t, Taken, outcome)
	require.Equal(t, start.Add(800*time.Millisecond), at)
}

// Rates and sizes change all the time while many goroutines take from few values. Each
// value gets no more than the largest burst and what flows in at the highest rate, of which
// there is nothing, for the time stands still.
func TestChangesUnderLoadGiveNothing(t *testing.T) {
	const values, callers = 20, 8
	limits := []Limit{perSecond(7, 100), perSecond(10, 60), {Limit: 3, Window: time.Minute, Burst: 100}}
	type inForce struct {
		table *Buckets
		rates *Rates
	}
	rates := mustCompile(1, TokenBucket, limits[0])
	var present atomic.Pointer[inForce]
	present.Store(&inForce{NewBuckets(100, rates), rates})
	var passed [values]atomic.Int64
	var stop atomic.Bool
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			for i := uint64(c); !stop.Load(); i++ {
				p := present.Load()
				_, outcome := p.table.Take(hashOf(i%values), p.rates.Class(0), start, 1)
				if outcome == Taken {
					passed[i%values].Add(1)
				}
			}
		})
	}
	for version := uint64(2); version < 300; version++ {
		rates := mustCompile(version, TokenBucket, limits[version%3])
		size := 100
		if version/20%2 == 1 {
			size = 300
		}
		next := present.Load().table.Adopt(size, start)
		if version%2 == 0 {
			next.Activate(rates, start)
		}
		present.Store(&inForce{next, rates})
		for i := range uint64(50) {
			if first(next.Take(hashOf(i%values), rates.Class(0), start, 1)) == Taken {
				passed[i%values].Add(1)
			}
		}
	}
	stop.Store(true)
	group.Wait()
	for v := range passed {
		assert.LessOrEqual(t, passed[v].Load(), int64(100), "value %d", v)
		assert.Greater(t, passed[v].Load(), int64(98), "value %d", v)
	}
}

// A rate is lowered and raised again. That yields nothing.
func TestLoweringAndRaisingTheBurstYieldsNothing(t *testing.T) {
	large, small := perSecond(1, 10), perSecond(1, 5)
	rates := mustCompile(1, TokenBucket, large)
	b := NewBuckets(100, rates)
	passed := 0
	for version := uint64(2); version < 20; version++ {
		for first(b.Take(hashOf(1), rates.Class(0), start, 1)) == Taken {
			passed++
		}
		rates = mustCompile(version, TokenBucket, []Limit{large, small}[version%2])
		b.Activate(rates, start)
	}
	require.Equal(t, 10, passed)
}

// The table is full and the sketch judges. A change keeps what the sketch has counted.
func TestSketchKeepsWhatWasUsedWhenTheRateChanges(t *testing.T) {
	rates := mustCompile(1, TokenBucket, perSecond(1, 10))
	b := NewBuckets(100, rates)
	const values = 1000
	for v := range uint64(values) {
		for range 10 {
			b.Take(hashOf(v), rates.Class(0), start, 1)
		}
	}
	require.NotZero(t, b.Stats(start).WithoutSlot)
	for version, limit := range map[uint64]Limit{2: perSecond(0.5, 10), 3: {Limit: 7, Window: time.Second, Burst: 10}} {
		if version < b.state.Load().rates.version {
			continue
		}
		rates = mustCompile(version, TokenBucket, limit)
		b.Activate(rates, start)
		for v := range uint64(values) {
			require.NotEqual(t, Taken, first(b.Take(hashOf(v), rates.Class(0), start, 1)))
		}
	}
	larger := b.Adopt(2000, start)
	rates = mustCompile(4, TokenBucket, perSecond(7, 10))
	for v := range uint64(values) {
		require.Equal(t, Refused, first(larger.Take(hashOf(v), rates.Class(0), start, 1)))
	}
	keepsSize := func(now clock.Instant) bool { return larger.Adopt(5000, now) == larger }
	require.True(t, keepsSize(start), "not before what was taken over is as new")
	require.True(t, keepsSize(start.Add(time.Minute)), "that is not known yet")
	larger.Activate(rates, start)
	require.True(t, keepsSize(start))
	require.False(t, keepsSize(start.Add(time.Minute)))
}
