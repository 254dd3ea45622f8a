package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

// Coarse is a system clock that is read at intervals, so that Now costs one load instead of
// 9 ns, or 24 on machines whose time-stamp counter [System] cannot read. Limits hold on its
// time, as on that of any clock. Waits and response times are right within an interval.
// Buckets begin late by up to an interval, or later when the machine is too busy to run the
// goroutine that reads the clock.
type Coarse struct {
	Clock
	now  atomic.Int64 // the instant read last; 0 after Close
	stop chan struct{}
	done sync.WaitGroup
	once sync.Once
}

// NewCoarse returns a clock with the interval, or one millisecond if that is not
// positive. Its goroutine runs until Close.
func NewCoarse(interval time.Duration) *Coarse {
	if interval <= 0 {
		interval = time.Millisecond
	}
	c := &Coarse{Clock: System(), stop: make(chan struct{})}
	c.now.Store(int64(c.Clock.Now()))
	c.done.Go(func() { c.run(interval) })
	return c
}

func (c *Coarse) run(interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.now.Store(int64(c.Clock.Now()))
		case <-c.stop:
			c.now.Store(0)
			return
		}
	}
}

// Now returns the instant that the goroutine has read last.
func (c *Coarse) Now() Instant {
	if now := c.now.Load(); now != 0 {
		return Instant(now)
	}
	return c.Clock.Now()
}

// Close ends the goroutine. Afterwards the clock still works and is exact. Further
// calls do nothing.
func (c *Coarse) Close() {
	c.once.Do(func() { close(c.stop) })
	c.done.Wait()
}
