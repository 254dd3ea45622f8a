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

// While a table of calls under way is nearly full, a source has its share of the last slots, and of the
// sketch, for as long as its calls last, and as much again when they have ended.
func TestCallsUnderWayOfOneSourceLeaveSlotsToOthers(t *testing.T) {
	const values, limit = 20_000, 2
	c := NewConcurrency(values, 1)
	acquire := func(v uint64, from Source) (Place, bool) {
		place, outcome := c.Acquire(hashOf(v), 1, limit, from)
		return place, outcome == Taken
	}
	share := int(c.sourceShare())
	require.Greater(t, share, 50)
	flooder, inSketch := SourceOf(7), 0
	var held []Place
	flood := func(begin uint64) (passed int) {
		for v := begin; v < begin+4*values; v++ {
			if place, ok := acquire(v, flooder); ok {
				held, passed = append(held, place), passed+1
				if place.IsShared() {
					inSketch++
				}
			}
		}
		return passed
	}
	passed := flood(0)
	assert.Greater(t, passed, values, "a source may have as many as the table is for")
	assert.Positive(t, inSketch)
	assert.LessOrEqual(t, inSketch, limit*share/int(c.sketchCost()))
	_, outcome := c.Acquire(hashOf(1<<30), 1, limit, UnknownSource)
	require.Equal(t, NoSlot, outcome)
	var others []Place
	for v := range uint64(values / 8) {
		place, ok := acquire(1<<32+v, SourceOf(100+v%50))
		assert.True(t, ok)
		others = append(others, place)
	}
	for range 3 { // also if they come again and again
		for _, place := range held {
			c.Release(place)
		}
		held, inSketch = nil, 0
		again := flood(0)
		assert.LessOrEqual(t, again, passed, "values that have come before")
		assert.LessOrEqual(t, inSketch, limit*share/int(c.sketchCost()))
	}
	for _, place := range append(held, others...) {
		c.Release(place)
	}
	requireNothingHeld(t, c)
}

func requireNothingHeld(t *testing.T, c *Concurrency) {
	t.Helper()
	for _, cells := range [][]atomic.Int64{c.cells, c.sources.cells} {
		for i := range cells {
			require.Zero(t, cells[i].Load())
		}
	}
	require.Zero(t, c.Stats().Occupied)
}

// What sources hold is given back exactly, also when calls of the same values begin and end at the same
// moment, and when their places are given back since they are old.
func TestSourcesGiveBackWhatTheyHold(t *testing.T) {
	for name, maxAge := range map[string]time.Duration{"": 0, "after maxAge": 70 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			c := NewConcurrency(100, 1)
			var instant atomic.Int64
			instant.Store(int64(start))
			var group sync.WaitGroup
			for g := range uint64(4) {
				group.Go(func() {
					random := rand.New(rand.NewPCG(1, g))
					var held []Place
					for range 20_000 {
						now := clock.Instant(instant.Add(int64(10 * time.Microsecond)))
						hash, from := hashOf(random.Uint64N(400)), SourceOf(random.Uint64N(5))
						var place Place
						var outcome Outcome
						if maxAge > 0 {
							place, outcome = c.AcquireAged(hash, 1, 3, from, maxAge, now)
						} else {
							place, outcome = c.Acquire(hash, 1, 3, from)
						}
						if outcome == Taken {
							held = append(held, place)
						}
						if len(held) > 100 || outcome != Taken && len(held) > 0 {
							i := random.IntN(len(held))
							c.Release(held[i])
							held[i] = held[len(held)-1]
							held = held[:len(held)-1]
						}
					}
					for _, place := range held {
						c.Release(place)
					}
				})
			}
			group.Wait()
			assert.Positive(t, c.Stats().WithoutSlot)
			requireNothingHeld(t, c)
		})
	}
}

// Places that are never given back count for their source no longer than for their value.
func TestPlacesOfASourceAreFreeAfterMaxAge(t *testing.T) {
	const values = 1000
	c := NewConcurrency(values, 1)
	for round := range 5 {
		passed, inSketch := 0, 0
		for v := range uint64(4 * values) {
			at := start.Add(time.Duration(round) * 2 * time.Minute)
			place, outcome := c.AcquireAged(hashOf(v+uint64(round)<<32), 1, 2, SourceOf(7), time.Minute, at)
			if outcome == Taken {
				passed++
			}
			if outcome == Taken && place.IsShared() {
				inSketch++
			}
		}
		assert.Greater(t, passed, values)
		assert.Less(t, passed, values*7/5)
		assert.Equal(t, 2*int(c.sourceShare()/c.sketchCost()), inSketch)
	}
}

// A call has ended, and another value gets its slot before it has told so.
func TestSlotOfACallThatEndsCountsForOneSourceOnly(t *testing.T) {
	c := NewConcurrency(100, 1)
	s := &c.stripes[0]
	require.True(t, c.insert(s, 3, 17, true, SourceOf(7).short()))
	require.False(t, c.insert(s, 3, 18, true, SourceOf(8).short()), "it is in use")
	c.word(3).Add(^uint64(0))
	require.True(t, c.insert(s, 3, 18, true, SourceOf(8).short()))
	c.end(3, 1)
	requireNothingHeld(t, c)
}
