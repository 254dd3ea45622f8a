package stat_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/stat"
)

// fullCounter is where a counter stops.
const fullCounter = 1<<40 - 1

func TestLeapArrayStartsEmpty(t *testing.T) {
	t.Parallel()
	var a stat.LeapArray
	assert.Zero(t, a.Total())
	for _, bucket := range []int64{0, 1, -1, 63, 64, 1_700_000_000, math.MaxInt64, math.MinInt64} {
		assert.Zero(t, a.Get(bucket), "bucket %d", bucket)
	}
}

func TestLeapArrayRemembersTheLastBuckets(t *testing.T) {
	t.Parallel()
	// The starts are chosen so that buckets cross zero, and the point at which
	// the number of the lap wraps around.
	for _, first := range []int64{0, -70, 1_700_000_000, 1<<30 - 100, -(1 << 30) - 100} {
		var a stat.LeapArray
		last := first + 1000
		for b := first; b <= last; b++ {
			a.Add(b, 1)
			a.Add(b, 2)
		}
		for b := last - stat.Remembered + 1; b <= last; b++ {
			assert.Equal(t, uint64(3), a.Get(b), "bucket %d from %d", b, first)
		}
		assert.Zero(t, a.Get(last-100), "left behind")
		assert.Zero(t, a.Get(last+1), "yet to come")
		assert.Equal(t, uint64(3003), a.Total())
	}
}

func TestLeapArrayLeavesGapsEmpty(t *testing.T) {
	t.Parallel()
	var a stat.LeapArray
	for b := range int64(64) {
		a.Add(b, 5)
	}
	a.Add(1_000, 7)
	for b := int64(1_000 - stat.Remembered + 1); b < 1_000; b++ {
		assert.Zero(t, a.Get(b), "nothing happened in %d", b)
	}
	assert.Equal(t, uint64(7), a.Get(1_000))
	assert.Equal(t, uint64(64*5+7), a.Total())
}

func TestLeapArrayCountsLateEvents(t *testing.T) {
	t.Parallel()
	var a stat.LeapArray
	a.Add(100, 1)
	a.Add(100-stat.Remembered+1, 2)
	assert.Equal(t, uint64(2), a.Get(100-stat.Remembered+1), "still remembered")
	a.Add(100-64, 4)
	assert.Zero(t, a.Get(100-64), "the ring has left that bucket behind")
	assert.Equal(t, uint64(1), a.Get(100), "and nobody else's count grew")
	assert.Equal(t, uint64(7), a.Total(), "but it happened")
}

func TestLeapArrayCounterStaysWhereItIsFull(t *testing.T) {
	t.Parallel()
	for name, adds := range map[string][]uint64{
		"just full":         {fullCounter - 1, 1},
		"step by step":      {fullCounter - 1, 1, 1, 1},
		"in one step":       {fullCounter + 1},
		"to the last bit":   {1 << 40},
		"by a huge number":  {1, math.MaxUint64},
		"again and again":   {1 << 39, 1 << 39, 1 << 39},
		"from a huge start": {math.MaxUint64, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var a stat.LeapArray
			for _, n := range adds {
				a.Add(100, n)
			}
			assert.Equal(t, uint64(fullCounter), a.Get(100))
			a.Add(101, 3)
			assert.Equal(t, uint64(3), a.Get(101), "its neighbour is not touched")
			a.Add(164, 3)
			assert.Equal(t, uint64(3), a.Get(164), "nor the next lap")
		})
	}
}

func TestLeapArrayRaise(t *testing.T) {
	t.Parallel()
	var a stat.LeapArray
	steps := []struct {
		bucket int64
		value  uint64
		want   uint64
	}{
		{100, 5, 5},
		{100, 3, 5}, // lower: stays
		{100, 9, 9},
		{101, 1, 1},
		{164, 2, 2},               // the next lap starts over
		{100, 50, 0},              // left behind
		{164, 2, 2},               // and the new lap is not touched
		{165, 0, 0},               // nothing to raise
		{164, 1 << 50, 1<<40 - 1}, // full
	}
	for i, s := range steps {
		a.Raise(s.bucket, s.value)
		assert.Equal(t, s.want, a.Get(s.bucket), "step %d", i)
	}
	assert.Equal(t, uint64(fullCounter), a.Get(164))
}

func TestLeapArrayAllocatesNothing(t *testing.T) {
	var a stat.LeapArray
	bucket := int64(0)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		bucket++
		a.Add(bucket, 1)
		a.Raise(bucket, 2)
		a.Get(bucket)
		a.Total()
	}))
}
