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

// A table that grows decides as exact arithmetic does, also if the limits change before and after.
func TestGrowingKeepsWhatValuesHaveUsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := []Limit{perSecond(10, 10), perSecond(1, 5), perSecond(100, 20), {Limit: 5, Window: 5 * time.Second, Burst: 2}}
		limit := rapid.SampledFrom(limits).Draw(t, "limit")
		version, size, now := uint64(1), 200, start
		rates := mustCompile(version, TokenBucket, limit)
		b := NewBuckets(size, rates)
		values := make([]reference, 4)
		for v := range values {
			values[v].limit = limit
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				size += 100
				before := b
				if b = b.Grow(size, now); b != before {
					require.Equal(t, Stale, first(before.Take(hashOf(0), rates.Class(0), now, 1)))
				}
			case 1:
				limit = rapid.SampledFrom(limits).Draw(t, "limit")
				version++
				for v := range values {
					values[v].flow(now)
					values[v].limit = limit
				}
				rates = mustCompile(version, TokenBucket, limit)
				b.Activate(rates, now)
			default:
				now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "pause")))
				v, tokens := rapid.IntRange(0, 3).Draw(t, "value"), rapid.Int32Range(1, 3).Draw(t, "tokens")
				require.Equal(t, values[v].take(now, tokens), first(b.Take(hashOf(uint64(v)), rates.Class(0), now, tokens)) == Taken)
			}
		}
	})
}

func TestGrowingKeepsWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := CompileWindow(1, time.Second)
		size, now := 200, start
		w := NewWindows(size, terms)
		values := make([]countedTokens, 4)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "step") == 0 {
				size += 100
				before := w
				if w = w.Grow(size, now); w != before {
					require.Equal(t, Stale, first(before.Take(hashOf(0), terms, 5, now, 1)))
				}
			}
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)/4).Draw(t, "pause")))
			v, tokens := rapid.IntRange(0, 3).Draw(t, "value"), rapid.Int32Range(1, 3).Draw(t, "tokens")
			number := terms.number(now)
			passes := values[v].used(number)+int64(tokens) <= 5
			require.Equal(t, passes, first(w.Take(hashOf(uint64(v)), terms, 5, now, tokens)) == Taken)
			if passes {
				values[v].add(number, int64(tokens))
			}
		}
	})
}

// A table of another version is not taken over, nor is one that has been.
func TestOnlyTheTableInForceGrows(t *testing.T) {
	rates := mustCompile(1, TokenBucket, perSecond(1, 5))
	b := NewBuckets(200, rates)
	assert.Same(t, b, b.Grow(200, start), "it is as large")
	assert.Same(t, b, b.Grow(100, start), "it is larger")
	next := b.Grow(400, start)
	require.NotSame(t, b, next)
	assert.Same(t, b, b.Grow(800, start), "it has been taken over")
	require.Equal(t, Taken, first(next.Take(hashOf(1), rates.Class(0), start, 5)))
	require.Equal(t, Taken, first(next.Take(hashOf(2), rates.Class(0), start, 5)))
	later := start.Add(time.Minute)
	third := next.Grow(800, later)
	require.NotSame(t, next, third, "nothing that it has taken over counts any more")
	unused := third.Adopt(1600, later)
	require.NotSame(t, third, unused)
	assert.Same(t, unused, unused.Grow(3200, later), "it is not in use yet")
}

// Many goroutines take from few values while the table grows again and again. Time stands still:
// no value gets more than its burst.
func TestGrowingUnderLoadGivesNothing(t *testing.T) {
	const values, callers, burst = 20, 4, 1000
	rates := mustCompile(1, TokenBucket, perSecond(1, burst))
	terms := CompileWindow(1, time.Second)
	var buckets atomic.Pointer[Buckets]
	var windows atomic.Pointer[Windows]
	buckets.Store(NewBuckets(100, rates))
	windows.Store(NewWindows(100, terms))
	var taken [2][values]atomic.Int64
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for i := range values * burst {
				v := uint64(i % values)
				for outcome := Stale; outcome == Stale; {
					if outcome = first(buckets.Load().Take(hashOf(v), rates.Class(0), start, 1)); outcome == Taken {
						taken[0][v].Add(1)
					}
				}
				for outcome := Stale; outcome == Stale; {
					if outcome = first(windows.Load().Take(hashOf(v), terms, burst, start, 1)); outcome == Taken {
						taken[1][v].Add(1)
					}
				}
			}
		})
	}
	for size := 200; size < 400; size += 100 {
		buckets.Store(buckets.Load().Grow(size, start))
		windows.Store(windows.Load().Grow(size, start))
	}
	group.Wait()
	for v := range values {
		assert.EqualValues(t, burst, taken[0][v].Load())
		assert.EqualValues(t, burst, taken[1][v].Load())
	}
}

// Values without a slot that come from one source may pass what a few values may. Others pass all
// the same, and none gets more than its limit, from however many sources it comes.
func TestValuesWithoutASlotShareTheLimitOfTheirSource(t *testing.T) {
	const slots, limit = 20_000, 5
	hour := Limit{Limit: limit, Window: time.Hour, Burst: limit}
	rates, terms := mustCompile(1, TokenBucket, hour), CompileWindow(1, time.Hour)
	buckets, windows := NewBuckets(slots, rates), NewWindows(slots, terms)
	for kind, take := range map[string]func(v uint64, from Source, now clock.Instant) Outcome{
		"buckets": func(v uint64, from Source, now clock.Instant) Outcome {
			_, _, outcome := buckets.TakeOrWait(hashOf(v), rates.Class(0), now, 1, from)
			return outcome
		},
		"windows": func(v uint64, from Source, now clock.Instant) Outcome {
			return first(windows.TakeFrom(hashOf(v), terms, limit, now, 1, from))
		},
	} {
		t.Run(kind, func(t *testing.T) {
			share := int(buckets.sourceShare())
			require.Greater(t, share, 50)
			for v := range uint64(2 * slots) {
				for range limit {
					take(v, SourceOf(7), start)
				}
			}
			passed, full := 0, uint64(1<<32)
			for v := range uint64(10 * share * limit) {
				if take(full+v, SourceOf(7), start) == Taken {
					passed++
				}
			}
			assert.LessOrEqual(t, passed, share*limit)
			assert.Equal(t, NoSlot, take(full+1<<20, UnknownSource, start))

			refused := 0
			for v := range uint64(1000) {
				if take(full+1<<21+v, SourceOf(1000+v%20), start) != Taken {
					refused++
				}
			}
			assert.LessOrEqual(t, refused, 10, "newcomers from elsewhere")

			victim := 0
			for source := range uint64(1000) {
				if take(full+1<<22, SourceOf(2000+source), start) == Taken {
					victim++
				}
			}
			assert.LessOrEqual(t, victim, limit, "one value from many sources")
			assert.Positive(t, victim)
		})
	}
}

// Where all calls come from one source, its values may be as many as the table is for, and others
// find the last slots afterwards.
func TestValuesOfOneSourceMayBeAsManyAsTheTableIsFor(t *testing.T) {
	const values, limit = 20_000, 5
	hour := Limit{Limit: limit, Window: time.Hour, Burst: limit}
	rates, terms := mustCompile(1, TokenBucket, hour), CompileWindow(1, time.Hour)
	buckets, windows := NewBuckets(values, rates), NewWindows(values, terms)
	for kind, take := range map[string]func(v uint64, from Source) Outcome{
		"buckets": func(v uint64, from Source) Outcome {
			_, _, outcome := buckets.TakeOrWait(hashOf(v), rates.Class(0), start, 1, from)
			return outcome
		},
		"windows": func(v uint64, from Source) Outcome {
			return first(windows.TakeFrom(hashOf(v), terms, limit, start, 1, from))
		},
	} {
		t.Run(kind, func(t *testing.T) {
			refused := 0
			for v := range uint64(values) {
				outcome := take(v, UnknownSource)
				if outcome == NoSlot {
					outcome = take(v, SourceOf(7))
				}
				if outcome != Taken {
					refused++
				}
			}
			t.Logf("%d of %d", refused, values)
			assert.LessOrEqual(t, refused, values/1000)

			for v := range uint64(10 * values) {
				take(values+v, SourceOf(7))
			}
			for v := range uint64(values / 8) {
				assert.Equal(t, Taken, take(11*values+v, SourceOf(100+v%50)))
			}
		})
	}
}

// In the smallest table a value without a slot may use a part of its limit, however large that is.
func TestLargeCallsWithoutASlotCountForTheirSource(t *testing.T) {
	const limit = 1<<31 - 1
	terms := CompileWindow(1, time.Hour)
	windows := NewWindows(100, terms)
	for v := range uint64(1000) {
		windows.TakeFrom(hashOf(v), terms, limit, start, 1, SourceOf(v))
	}
	for range 3 {
		_, outcome := windows.TakeFrom(hashOf(1<<40), terms, limit, start, limit, SourceOf(7))
		assert.NotEqual(t, NoSlot, outcome)
	}
	passed := 0
	for v := range uint64(100) {
		if first(windows.TakeFrom(hashOf(1<<41+v), terms, limit, start, limit, SourceOf(7))) == Taken {
			passed++
		}
	}
	assert.LessOrEqual(t, passed, int(windows.sourceShare()))
}
