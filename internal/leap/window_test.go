package leap_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/leap"
)

// openWindow returns a window that is open in bucket 100.
func openWindow(buckets int, ceiling int64) *leap.Window {
	w := leap.NewWindow(buckets, 100)
	w.Open(100, ceiling)
	return w
}

// moveTo opens a later bucket, or the present one anew.
func moveTo(w *leap.Window, bucket, ceiling int64) {
	w.Close()
	w.Open(bucket, ceiling)
}

func take(w *leap.Window, bucket int64, times int) (taken int) {
	for range times {
		if w.Take(bucket, 1) == leap.Taken {
			taken++
		}
	}
	return taken
}

func TestWindowIsClosedWhenMade(t *testing.T) {
	t.Parallel()
	w := leap.NewWindow(10, 100)
	assert.Equal(t, leap.NotOpen, w.Take(100, 1))
	assert.False(t, w.TryGiveBack(100, 1))
	assert.Equal(t, int64(100), w.OpenBucket())
	assert.Zero(t, w.Held(100))
}

func TestWindowTakesUpToItsCeiling(t *testing.T) {
	t.Parallel()
	w := openWindow(10, 5)
	assert.Equal(t, leap.Taken, w.Take(100, 3))
	assert.Equal(t, leap.Full, w.Take(100, 3), "three more would be one too many")
	assert.Equal(t, leap.Taken, w.Take(100, 2), "a refusal takes nothing")
	assert.Equal(t, leap.Full, w.Take(100, 1))
	assert.Zero(t, w.Remaining())
	assert.Equal(t, int64(5), w.Held(100))
}

func TestWindowKnowsOnlyTheOpenBucket(t *testing.T) {
	t.Parallel()
	w := openWindow(10, 5)
	for _, bucket := range []int64{99, 101, 0, -100, 100 + 1<<31, math.MaxInt64} {
		assert.Equal(t, leap.NotOpen, w.Take(bucket, 1), "bucket %d", bucket)
		assert.False(t, w.TryGiveBack(bucket, 1), "bucket %d", bucket)
	}
	assert.Equal(t, int64(5), w.Remaining())
}

func TestWindowFreesWhatLeavesIt(t *testing.T) {
	t.Parallel()
	w := openWindow(3, 5)
	take(w, 100, 2)
	moveTo(w, 101, 5)
	take(w, 101, 3)

	assert.Equal(t, int64(5), w.Held(101))
	assert.Equal(t, int64(5), w.Held(102), "the first is still in it")
	assert.Equal(t, int64(3), w.Held(103), "two have left")
	assert.Equal(t, int64(0), w.Held(104))
	assert.Equal(t, int64(0), w.Held(1_000_000))

	moveTo(w, 102, 5)
	assert.Equal(t, 0, take(w, 102, 9))
	moveTo(w, 103, 5)
	assert.Equal(t, 2, take(w, 103, 9))
	moveTo(w, 1_000_000, 5)
	assert.Equal(t, 5, take(w, 1_000_000, 9), "long idle: all of it")
}

func TestWindowBeforeTheEpoch(t *testing.T) {
	t.Parallel()
	w := leap.NewWindow(3, -2)
	w.Open(-2, 5)
	assert.Equal(t, 5, take(w, -2, 9))
	for i, want := range []int{0, 0, 5} {
		bucket := int64(i) - 1
		moveTo(w, bucket, 5)
		assert.Equal(t, want, take(w, bucket, 9), "bucket %d", bucket)
	}
}

func TestWindowCloseTellsWhatWasTaken(t *testing.T) {
	t.Parallel()
	w := openWindow(3, 5)
	take(w, 100, 2)
	assert.Equal(t, int64(2), w.Close())
	assert.Equal(t, int64(2), w.Close(), "closing it again says the same")
	assert.Equal(t, leap.NotOpen, w.Take(100, 1))
	w.Open(100, 5)
	assert.Equal(t, 3, take(w, 100, 9), "what was taken before still counts")
	assert.Equal(t, int64(5), w.Close(), "and is told with the rest")
}

func TestWindowGiveBack(t *testing.T) {
	t.Parallel()
	t.Run("into the open bucket", func(t *testing.T) {
		t.Parallel()
		w := openWindow(3, 5)
		take(w, 100, 5)
		assert.True(t, w.TryGiveBack(100, 2))
		assert.Equal(t, 2, take(w, 100, 9))
	})
	t.Run("into an earlier bucket", func(t *testing.T) {
		t.Parallel()
		w := openWindow(3, 5)
		take(w, 100, 4)
		moveTo(w, 101, 5)
		assert.False(t, w.TryGiveBack(100, 1), "the window has to be closed for that")
		w.Close()
		assert.True(t, w.GiveBack(100, 1))
		w.Open(101, 5)
		assert.Equal(t, 2, take(w, 101, 9))
		moveTo(w, 103, 5)
		assert.Equal(t, 3, take(w, 103, 9), "three left with bucket 100, not four")
	})
	t.Run("into the bucket that was just closed", func(t *testing.T) {
		t.Parallel()
		w := openWindow(3, 5)
		take(w, 100, 5)
		w.Close()
		assert.True(t, w.GiveBack(100, 2))
		w.Open(100, 5)
		assert.Equal(t, 2, take(w, 100, 9))
		assert.Equal(t, int64(5), w.Close())
	})
	t.Run("too late or too early", func(t *testing.T) {
		t.Parallel()
		w := openWindow(3, 5)
		take(w, 100, 5)
		moveTo(w, 103, 5)
		w.Close()
		assert.False(t, w.GiveBack(100, 1), "it has left the window")
		assert.False(t, w.GiveBack(104, 1), "it is not there yet")
		w.Open(103, 5)
		assert.Equal(t, 5, take(w, 103, 9))
	})
}

func TestWindowUnderALoweredCeiling(t *testing.T) {
	t.Parallel()
	w := openWindow(3, 10)
	take(w, 100, 8)
	moveTo(w, 101, 3)
	assert.Equal(t, int64(-5), w.Remaining())
	assert.Equal(t, leap.Full, w.Take(101, 1))
	assert.True(t, w.TryGiveBack(101, 2), "given back or not, there is no room yet")
	assert.Equal(t, leap.Full, w.Take(101, 1))

	moveTo(w, 101, 10)
	assert.Equal(t, 4, take(w, 101, 9), "raised again: the room that was left, and the two")
}

func TestWindowHoldsTheLargestCeiling(t *testing.T) {
	t.Parallel()
	const largest = 1_000_000_000
	w := openWindow(2, largest)
	assert.Equal(t, leap.Full, w.Take(100, math.MaxInt32))
	assert.Equal(t, leap.Taken, w.Take(100, largest))
	assert.Equal(t, leap.Full, w.Take(100, 1))
	moveTo(w, 101, 0)
	assert.Equal(t, int64(-largest), w.Remaining())
	moveTo(w, 102, largest)
	assert.Equal(t, int64(largest), w.Remaining())
}

// none is a bucket that no window holds.
const none = math.MinInt64 / 2

func TestWindowFreeIn(t *testing.T) {
	t.Parallel()
	// Four buckets, full with 1, 2, 0 and 3 tokens.
	fill := func() *leap.Window {
		w := openWindow(4, 6)
		for i, n := range []int{1, 2, 0, 3} {
			moveTo(w, 100+int64(i), 6)
			take(w, 100+int64(i), n)
		}
		return w
	}
	for n, want := range map[int32]int64{1: 1, 2: 2, 3: 2, 4: 4, 6: 4} {
		w := fill()
		assert.Equal(t, want, w.FreeIn(n, 0, none), "%d tokens", n)
		w.Close()
		w.Open(103+want-1, 6)
		assert.Equal(t, leap.Full, w.Take(103+want-1, n), "%d tokens, a bucket too early", n)
		moveTo(w, 103+want, 6)
		assert.Equal(t, leap.Taken, w.Take(103+want, n), "%d tokens, when told", n)
	}
}

func TestWindowFreeInPassesOverAnExtraToken(t *testing.T) {
	t.Parallel()
	w := openWindow(4, 4) // one of them extra, in bucket 101
	for i, n := range []int{1, 1, 2} {
		moveTo(w, 100+int64(i), 4)
		take(w, 100+int64(i), n)
	}
	moveTo(w, 103, 4)
	assert.Equal(t, int64(1), w.FreeIn(1, 0, 101))
	assert.Equal(t, int64(3), w.FreeIn(2, 0, 101), "what leaves with 101 makes no room")
	assert.Equal(t, int64(2), w.FreeIn(2, 0, none))
	assert.Equal(t, int64(1), w.FreeIn(3, 2, none), "there is room for two now")
}

func TestResizedWindowHoldsWhatIsPutIntoIt(t *testing.T) {
	t.Parallel()
	w := openWindow(4, 9)
	take(w, 100, 3)
	w.Close()
	assert.Equal(t, int64(3), w.TakenIn(100))
	w.Resize(2, 50)
	assert.Equal(t, int64(50), w.OpenBucket())
	assert.Equal(t, leap.NotOpen, w.Take(50, 1), "still closed")
	assert.Zero(t, w.Held(50), "and empty")

	_, ok := w.Put(48, 9)
	assert.False(t, ok, "the window has moved past it")
	for bucket, want := range map[int64]int64{49: 49, 50: 50, 53: 50} {
		in, ok := w.Put(bucket, 2)
		assert.True(t, ok)
		assert.Equal(t, want, in)
	}
	assert.Equal(t, int64(2), w.TakenIn(49))
	for i, want := range []int64{6, 4, 0} {
		assert.Equal(t, want, w.Held(50+int64(i)), "held %d buckets on", i)
	}
	w.Open(50, 12)
	assert.Equal(t, int64(6), w.Remaining())
	assert.Equal(t, int64(4), w.Taken())
	assert.Equal(t, leap.Taken, w.Take(50, 6))
	assert.Equal(t, int64(10), w.Close())
}

func TestWindowAllocatesNothing(t *testing.T) {
	w := openWindow(10, 5)
	bucket := int64(100)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		for range 10 {
			w.Take(bucket, 1)
		}
		w.TryGiveBack(bucket, 1)
		w.Close()
		bucket++
		w.Open(bucket, 5)
	}))
}

func TestCloneOfAWindowIsIndependent(t *testing.T) {
	t.Parallel()
	w := leap.NewWindow(4, 10)
	w.Open(10, 5)
	assert.Equal(t, leap.Taken, w.Take(10, 2))
	w.Close()
	c := new(leap.Window)
	c.Copy(w)
	assert.Equal(t, leap.NotOpen, c.Take(10, 1), "closed too")
	w.Open(10, 5)
	c.Open(11, 5)
	assert.Equal(t, leap.Taken, c.Take(11, 3))
	assert.Equal(t, leap.Full, c.Take(11, 1), "it holds what the other did")
	assert.Equal(t, leap.Taken, w.Take(10, 3), "which holds nothing of it")
}
