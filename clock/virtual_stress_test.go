package clock_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestVirtualWakesEveryWaiterButNoneEarly(t *testing.T) {
	t.Parallel()
	const waiters, waits = 32, 50
	c := newVirtual()
	start := c.Now()
	var early, running atomic.Int64
	var wg sync.WaitGroup
	running.Store(waiters)
	for w := range waiters {
		wg.Go(func() {
			defer running.Add(-1)
			timer := c.NewTimer(0)
			for i := range waits {
				d := time.Duration(1+(w*7+i*13)%10) * time.Millisecond
				due := c.Now().Add(d)
				timer.Reset(d)
				if at := <-timer.C(); at.Before(due.Time()) || c.Now() < due {
					early.Add(1)
				}
			}
		})
	}
	for running.Load() > 0 {
		c.Advance(time.Millisecond)
	}
	wg.Wait()
	assert.Zero(t, early.Load(), "timers that fired before their time")
	assert.Zero(t, c.Timers())
	assert.GreaterOrEqual(t, c.Now().Sub(start), waits*time.Millisecond)
}
