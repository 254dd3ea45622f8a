package leap_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/leap"
)

// crowd is many goroutines that take from one window while one more moves it.
type crowd struct {
	window *leap.Window
	now    atomic.Int64 // the bucket that is open, or will be in a moment
	taken  [1000]atomic.Int64
	over   atomic.Bool
}

// take takes one to three tokens at a time and gives back a part of them, until
// the window moves no more.
func (c *crowd) take(taker int) {
	for i := 0; !c.over.Load(); i++ {
		bucket, n := c.now.Load(), int32(1+(taker+i)%3)
		if c.window.Take(bucket, n) != leap.Taken {
			runtime.Gosched() // or the one that moves the window would hardly run
			continue
		}
		c.taken[bucket].Add(int64(n))
		if i%4 == 0 && c.window.TryGiveBack(bucket, n) {
			c.taken[bucket].Add(-int64(n))
		}
	}
}

// move opens every bucket in turn, each when something was taken or there is no
// room in the one before, and returns what was taken by the window's account.
func (c *crowd) move(ceilings []int64) (closed []int64) {
	for b := 1; b < len(c.taken); b++ {
		for c.window.Remaining() > 0 && c.taken[b-1].Load() == 0 {
			runtime.Gosched()
		}
		closed = append(closed, c.window.Close())
		c.now.Store(int64(b))
		c.window.Open(int64(b), ceilings[b%len(ceilings)])
	}
	c.over.Store(true)
	return closed
}

func TestWindowNeverHoldsMoreThanItsCeiling(t *testing.T) {
	t.Parallel()
	const buckets, takers = 5, 64
	ceilings := []int64{40, 40, 40, 25, 25, 40}
	c := &crowd{window: leap.NewWindow(buckets, 0)}
	c.window.Open(0, ceilings[0])
	var taking sync.WaitGroup
	for i := range takers {
		taking.Go(func() { c.take(i) })
	}
	closed := c.move(ceilings)
	taking.Wait()

	for b, n := range closed {
		assert.Equal(t, c.taken[b].Load(), n, "what the takers got in bucket %d is what was counted", b)
		assert.GreaterOrEqual(t, n, int64(0))
	}
	var held int64
	for b := range closed {
		held += closed[b]
		if b >= buckets {
			held -= closed[b-buckets]
		}
		ceiling := ceilings[b%len(ceilings)]
		if closed[b] > 0 {
			assert.LessOrEqual(t, held, ceiling, "the window that ends with bucket %d", b)
		}
	}
}

func TestWindowAdmitsExactlyItsLimit(t *testing.T) {
	t.Parallel()
	const takers, ceiling = 64, 1000
	w := leap.NewWindow(10, 0)
	w.Open(0, ceiling)
	for b := range int64(30) {
		if b > 0 {
			moveTo(w, b, ceiling)
		}
		remaining := w.Remaining()
		var taken atomic.Int64
		var taking sync.WaitGroup
		for range takers {
			taking.Go(func() {
				got := int64(take(w, b, 40))
				if got > 0 && w.TryGiveBack(b, 1) {
					got--
				}
				taken.Add(got)
			})
		}
		taking.Wait()
		assert.Equal(t, remaining, taken.Load()+int64(take(w, b, ceiling)), "bucket %d", b)
		assert.Zero(t, w.Remaining())
	}
}
