package leap_test

import (
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/leap"
)

func TestWindowCheckTakesNothing(t *testing.T) {
	t.Parallel()
	w := leap.NewWindow(2, 100)
	assert.Equal(t, leap.NotOpen, w.Check(100, 1))
	w.Open(100, 3)
	for range 3 {
		assert.Equal(t, leap.Taken, w.Check(100, 3))
		assert.Equal(t, leap.Full, w.Check(100, 4))
		assert.Equal(t, leap.NotOpen, w.Check(101, 1))
	}
	assert.Zero(t, w.Taken())
}

func TestWindowCountsBeyondItsLimit(t *testing.T) {
	t.Parallel()
	w := leap.NewWindow(2, 100)
	assert.False(t, w.TryCount(100, 1), "it is closed")
	w.Open(100, 3)
	assert.True(t, w.TryCount(100, 2))
	assert.Equal(t, int64(1), w.Remaining())
	assert.True(t, w.TryCount(100, 5))
	assert.Equal(t, int64(-4), w.Remaining())
	assert.Equal(t, int64(7), w.Taken())
	assert.Equal(t, leap.Full, w.Take(100, 1))
	assert.False(t, w.TryCount(99, 1))

	w.Close()
	w.Open(101, 10)
	assert.Equal(t, int64(3), w.Remaining(), "what was counted leaves with its bucket")
	w.Close()
	w.Open(102, 10)
	assert.Equal(t, int64(10), w.Remaining())
}

func TestWindowCountsNoMoreThanItCanHold(t *testing.T) {
	t.Parallel()
	w := leap.NewWindow(3, 100)
	for bucket := int64(100); bucket < 103; bucket++ {
		w.Open(bucket, 1_000_000_000)
		for range 5 {
			assert.True(t, w.TryCount(bucket, math.MaxInt32))
		}
		assert.Equal(t, leap.Full, w.Take(bucket, 1))
		assert.Positive(t, w.Taken())
		w.Close()
	}
	w.Open(105, 10)
	assert.Equal(t, int64(10), w.Remaining(), "all of it has left")
}

func TestWindowLosesNoCountToManyGoroutines(t *testing.T) {
	t.Parallel()
	const callers, calls, limit = 64, 500, 1000
	w := leap.NewWindow(4, 100)
	w.Open(100, limit)
	var mu sync.Mutex
	var taken int64
	var calling sync.WaitGroup
	for c := range callers {
		calling.Go(func() {
			var mine int64
			for i := range calls {
				w.Check(100, 1)
				if (c+i)%2 == 0 {
					w.TryCount(100, 1)
				} else if w.Take(100, 1) == leap.Taken {
					mine++
				}
			}
			mu.Lock()
			defer mu.Unlock()
			taken += mine
		})
	}
	calling.Wait()
	assert.LessOrEqual(t, taken, int64(limit))
	assert.Equal(t, callers*calls/2+taken, w.Taken())
}
