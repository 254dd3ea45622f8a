package stat_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/stat"
)

// race is a leap array that many goroutines write to while time moves on, and
// beside it what they are about to write.
type race struct {
	array stat.LeapArray
	begun [1 << 14]atomic.Uint64 // by bucket: raised before the array is
	now   atomic.Int64           // the present bucket
	done  atomic.Bool
}

// write adds to the present bucket and to late ones, and moves time on.
func (r *race) write(writer, adds int) {
	for i := range adds {
		now := r.now.Load()
		if i%(writer%7+9) == 0 {
			now = r.now.Add(1)
		}
		late := []int64{0, 0, 0, 1, 2, 40, 64, 70}[(writer+i)%8]
		bucket, n := max(0, now-late), uint64(1+i%3)
		r.begun[bucket].Add(n)
		r.array.Add(bucket, n)
	}
}

// watch returns how often it saw something that cannot be.
func (r *race) watch() (wrong int) {
	var total uint64
	for !r.done.Load() {
		if present := r.array.Total(); present < total {
			wrong++
		} else {
			total = present
		}
		now := r.now.Load()
		for b := max(0, now-70); b <= now; b++ {
			if got := r.array.Get(b); got > r.begun[b].Load() {
				wrong++
			}
		}
	}
	return wrong
}

func (r *race) sum() (total uint64) {
	for b := range r.begun {
		total += r.begun[b].Load()
	}
	return total
}

func TestLeapArrayLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	const writers, adds, readers = 64, 1500, 2
	var r race
	var writing, reading sync.WaitGroup
	var wrong atomic.Int64
	for range readers {
		reading.Go(func() { wrong.Add(int64(r.watch())) })
	}
	for w := range writers {
		writing.Go(func() { r.write(w, adds) })
	}
	writing.Wait()
	r.done.Store(true)
	reading.Wait()

	assert.Zero(t, wrong.Load(), "a total that went down, or a bucket that held more than was added")
	assert.Equal(t, r.sum(), r.array.Total(), "every add once")
	now := r.now.Load()
	assert.Greater(t, now, int64(1000), "time has moved many laps")
	for b := now - stat.Remembered + 1; b <= now; b++ {
		assert.Equal(t, r.begun[b].Load(), r.array.Get(b), "bucket %d of %d", b, now)
	}
}

func TestLeapArrayRaiseKeepsTheHighest(t *testing.T) {
	t.Parallel()
	const writers, buckets = 64, 200
	var a stat.LeapArray
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for b := range int64(buckets) {
				a.Raise(b, uint64(w+1)*uint64(b%5))
			}
		})
	}
	writing.Wait()
	for b := int64(buckets - stat.Remembered); b < buckets; b++ {
		assert.Equal(t, uint64(writers)*uint64(b%5), a.Get(b), "bucket %d", b)
	}
}
