package table

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
)

// agesEpoch is when the tests of ages begin: not at the start of an epoch of the clock.
const agesEpoch = clock.Instant(1_700_000_000_123_456_789)

// A table with ages decides as a list of calls and the instants at which they were acquired, also
// when it is replaced by one of another size.
func TestPlacesAreGivenBackAfterMaxAge(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const maxAge = 7 * time.Second
		type call struct {
			table *Concurrency
			place Place
			value int
			epoch int64
		}
		version := uint64(1)
		c := NewConcurrency(200, version)
		now, limit := agesEpoch, rapid.Int64Range(1, 4).Draw(t, "limit")
		var calls []call
		under := func(value int) (count int64) {
			for _, call := range calls {
				if call.value == value && int64(now.Sub(agesEpoch)/time.Second) < call.epoch+8 {
					count++
				}
			}
			return count
		}
		_, _ = c.AcquireAged(hashOf(99), version, 0, NoSource, maxAge, now) // epochs begin now
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			switch step := rapid.IntRange(0, 19).Draw(t, "step"); {
			case step == 0:
				version++
				_, outcome := c.AcquireAged(hashOf(99), version, 0, NoSource, maxAge, now)
				require.Equal(t, Refused, outcome)
			case step < 6 && len(calls) > 0:
				i := rapid.IntRange(0, len(calls)-1).Draw(t, "call")
				calls[i].table.Release(calls[i].place) // perhaps long after it was given back
				calls = append(calls[:i], calls[i+1:]...)
			default:
				value := rapid.IntRange(0, 3).Draw(t, "value")
				before := under(value)
				require.Equal(t, before, c.InFlight(hashOf(uint64(value)), now))
				place, outcome := c.AcquireAged(hashOf(uint64(value)), version, limit, NoSource, maxAge, now)
				require.Equal(t, before < limit, outcome == Taken)
				if outcome == Taken {
					calls = append(calls, call{c, place, value, int64(now.Sub(agesEpoch) / time.Second)})
				}
			}
			oldest := time.Duration(0)
			for _, call := range calls {
				if start := agesEpoch.Add(time.Duration(call.epoch) * time.Second); int64(now.Sub(agesEpoch)/time.Second) < call.epoch+8 {
					oldest = max(oldest, now.Sub(start))
				}
			}
			require.Equal(t, oldest, c.Oldest(now))
		}
		for _, left := range calls {
			left.table.Release(left.place)
		}
		require.Zero(t, c.Stats().Occupied)
	})
}

func TestPlacesWithoutASlotAreGivenBackAfterMaxAge(t *testing.T) {
	t.Parallel()
	c := NewConcurrency(10, 1)
	const values = 100
	acquire := func(now clock.Instant) (places []Place, shared int) {
		for v := range uint64(values) {
			place, outcome := c.AcquireAged(hashOf(v), 1, 1, NoSource, time.Minute, now)
			if outcome == Taken {
				places = append(places, place)
				if place.IsShared() {
					shared++
				}
			}
		}
		return places, shared
	}
	leaked, shared := acquire(agesEpoch)
	assert.Positive(t, shared)
	again, _ := acquire(agesEpoch.Add(time.Minute - 1))
	assert.Empty(t, again)
	after, _ := acquire(agesEpoch.Add(70 * time.Second))
	assert.Len(t, after, len(leaked))
	for _, place := range leaked {
		c.Release(place)
	}
	again, _ = acquire(agesEpoch.Add(71 * time.Second))
	assert.Empty(t, again, "the places that are given back late are those of others")
	for _, place := range after {
		c.Release(place)
	}
	for v := range uint64(values) {
		assert.Zero(t, c.InFlight(hashOf(v), agesEpoch.Add(72*time.Second)))
	}
	assert.Zero(t, c.Oldest(agesEpoch.Add(72*time.Second)))
	assert.EqualValues(t, len(leaked), c.Expired())
}

func TestPlacesInATableThatWasReplacedAreGivenBack(t *testing.T) {
	t.Parallel()
	former := NewConcurrency(100, 1)
	_, outcome := former.AcquireAged(hashOf(1), 1, 1, NoSource, time.Minute, agesEpoch)
	require.Equal(t, Taken, outcome)
	next := former.Adopt(200, agesEpoch)
	next.Activate(2)
	_, outcome = next.AcquireAged(hashOf(1), 2, 1, NoSource, time.Minute, agesEpoch.Add(30*time.Second))
	assert.Equal(t, Refused, outcome)
	_, outcome = next.AcquireAged(hashOf(1), 2, 1, NoSource, time.Minute, agesEpoch.Add(70*time.Second))
	assert.Equal(t, Taken, outcome)
}

func TestLateInstantsCountAsThoseOfThePresentEpoch(t *testing.T) {
	t.Parallel()
	c := NewConcurrency(100, 1)
	_, outcome := c.AcquireAged(hashOf(1), 1, 2, NoSource, time.Second, agesEpoch.Add(time.Hour))
	require.Equal(t, Taken, outcome)
	passed := 0
	for i := range 20 {
		if _, outcome := c.AcquireAged(hashOf(1), 1, 2, NoSource, time.Second, agesEpoch.Add(time.Duration(i)*time.Minute)); outcome == Taken {
			passed++
		}
	}
	assert.Equal(t, 1, passed)
}

func TestAnotherMaxAgeCountsFromThenOn(t *testing.T) {
	t.Parallel()
	c := NewConcurrency(100, 1)
	_, outcome := c.AcquireAged(hashOf(1), 1, 1, NoSource, time.Hour, agesEpoch)
	require.Equal(t, Taken, outcome)
	changed := agesEpoch.Add(time.Minute)
	_, outcome = c.AcquireAged(hashOf(1), 2, 1, NoSource, time.Second, changed)
	assert.Equal(t, Refused, outcome)
	_, outcome = c.AcquireAged(hashOf(1), 2, 1, NoSource, time.Second, changed.Add(900*time.Millisecond))
	assert.Equal(t, Refused, outcome)
	_, outcome = c.AcquireAged(hashOf(1), 2, 1, NoSource, time.Second, changed.Add(1200*time.Millisecond))
	assert.Equal(t, Taken, outcome)
}

// Callers that end all their calls never have more under way than may be, and in the end there are
// none, whatever leaks meanwhile.
func TestAgesKeepTheLimitUnderConcurrency(t *testing.T) {
	t.Parallel()
	const callers, limit = 8, 3
	c := NewConcurrency(100, 1)
	var now, under, most atomic.Int64
	now.Store(int64(agesEpoch))
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(caller), 1))
			for range 3000 {
				at := clock.Instant(now.Add(int64(10 * time.Microsecond))) // all of it is shorter than a minute
				place, outcome := c.AcquireAged(hashOf(7), 1, limit, NoSource, time.Minute, at)
				if outcome == Taken {
					raise(&most, under.Add(1))
					under.Add(-1)
					c.Release(place)
				}
				if random.IntN(100) == 0 { // a leak of another value
					_, _ = c.AcquireAged(hashOf(random.Uint64N(5)), 1, 50, NoSource, time.Millisecond*10, at)
					_, _ = c.AcquireAged(hashOf(7), 1, 0, NoSource, time.Minute, at)
				}
			}
		})
	}
	all.Wait()
	assert.LessOrEqual(t, most.Load(), int64(limit))
	assert.Positive(t, most.Load())
	end := clock.Instant(now.Load()).Add(time.Hour)
	for v := range uint64(8) {
		assert.Zero(t, c.InFlight(hashOf(v), end))
	}
}
